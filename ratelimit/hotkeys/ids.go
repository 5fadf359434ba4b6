package hotkeys

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/decide"
)

// ids has the statistics of calls with the option ID. Any goroutine may use it.
type ids struct {
	repeats, forgotten atomic.Int64
	// shortest is one more than the minimum time, in nanoseconds, for which a call that was
	// forgotten early was remembered; 0 if there was no such call.
	shortest atomic.Int64
}

// IDs has the counts of the server about calls with the option ID.
type IDs struct {
	// Repeats is the number of calls that repeated a remembered one, and so charged nothing.
	Repeats int64
	// Forgotten is the number of calls that were forgotten early, because their key remembered as
	// many calls as it may. Shortest is the minimum time for which any of them was remembered, if
	// Forgotten is not 0.
	Forgotten int64
	Shortest  time.Duration
}

// IDs returns the statistics of calls with the option ID.
func (k *Keys) IDs() IDs {
	return IDs{k.ids.repeats.Load(), k.ids.forgotten.Load(), time.Duration(max(0, k.ids.shortest.Load()-1))}
}

// ResetIDs sets the statistics of calls with the option ID to 0.
func (k *Keys) ResetIDs() {
	k.ids.repeats.Store(0)
	k.ids.forgotten.Store(0)
	k.ids.shortest.Store(0)
}

// forgot counts n calls that were forgotten early. The minimum time for which any of them was
// remembered is shortest.
func (s *ids) forgot(n uint32, shortest time.Duration) {
	s.forgotten.Add(int64(n))
	now := min(int64(shortest), math.MaxInt64-1) + 1
	for was := s.shortest.Load(); was == 0 || now < was; was = s.shortest.Load() {
		if s.shortest.CompareAndSwap(was, now) {
			return
		}
	}
}

// NoteID counts the decided ask a, which has a token and may be a reservation. from is its caller. If the
// ask was the repetition of a call, NoteID also adds its keys to the table of repeated keys.
// [Recorder.Note] and [Recorder.NoteClauses] do the same for their ask.
func (r *Recorder) NoteID(from Caller, a *decide.Ask) {
	if a.Forgotten > 0 {
		r.keys.ids.forgot(a.Forgotten, a.Shortest)
	}
	if a.Reserve.TTL != 0 {
		r.keys.noteReservation(a)
	}
	if !a.Repeated {
		return
	}
	r.keys.ids.repeats.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Family != decide.Several {
		r.addRepeat(from, a.DB, a.Key)
		return
	}
	for i := range a.Clauses {
		r.addRepeat(from, a.DB, a.Clauses[i].Key)
	}
}

// addRepeat adds key to the table of repeated keys. r.mu is held.
func (r *Recorder) addRepeat(from Caller, db int, key []byte) {
	r.tables[Repeats].add(&notedKey{key: key, db: db, weight: 1, hash: topHash(db, key)}, from.Now(), nil)
}
