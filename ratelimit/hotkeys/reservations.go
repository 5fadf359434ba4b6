package hotkeys

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/reservation"
)

// reservations has the statistics of reservations. Any goroutine may use it.
type reservations struct {
	made, committed, late, cancelled, expired, unknown, refused atomic.Int64
}

// Reservations has the counts of the server about reservations.
type Reservations struct {
	// Made is the number of calls that made a reservation, without repetitions, and Refused is the number of
	// those that were denied because their key had as many live reservations as it may.
	Made, Refused int64
	// Committed, Late and Cancelled are the numbers of reservations that were committed before their
	// time had passed, committed after that, and cancelled.
	Committed, Late, Cancelled int64
	// Expired is the number of reservations that have ended because their time had passed. The next call
	// of their key counts them. Unknown is the number of commits and cancellations of reservations that
	// their key does not know.
	Expired, Unknown int64
}

// Reservations returns the statistics of reservations.
func (k *Keys) Reservations() Reservations {
	s := &k.reservations
	return Reservations{
		Made: s.made.Load(), Refused: s.refused.Load(),
		Committed: s.committed.Load(), Late: s.late.Load(), Cancelled: s.cancelled.Load(),
		Expired: s.expired.Load(), Unknown: s.unknown.Load(),
	}
}

// ResetReservations sets the statistics of reservations to 0.
func (k *Keys) ResetReservations() {
	s := &k.reservations
	for _, n := range []*atomic.Int64{&s.made, &s.committed, &s.late, &s.cancelled, &s.expired, &s.unknown, &s.refused} {
		n.Store(0)
	}
}

// NoteLapsed counts n reservations, Lapsed of a decided ask, that have ended because their time had passed. Any
// goroutine may call it. [Recorder.Note], [Recorder.NoteClauses] and [Recorder.NoteSettled] do the same
// for their ask.
func (k *Keys) NoteLapsed(n uint32) {
	if n > 0 {
		k.reservations.expired.Add(int64(n))
	}
}

// NoteSettled counts the decided ask a, of family [decide.Settle]. It counts no decision.
func (r *Recorder) NoteSettled(a *decide.Ask) {
	r.keys.NoteLapsed(a.Lapsed)
	s := &r.keys.reservations
	switch op := a.Settlement.Op; {
	case op == reservation.Renew:
	case a.Settled == reservation.Unknown:
		s.unknown.Add(1)
	case a.Settled == reservation.Late:
		s.late.Add(1)
	case a.Settled != reservation.Done:
	case op == reservation.Commit:
		s.committed.Add(1)
	default:
		s.cancelled.Add(1)
	}
}

// noteReservation counts the decided ask a, which was to be a reservation.
func (k *Keys) noteReservation(a *decide.Ask) {
	switch {
	case a.Full:
		k.reservations.refused.Add(1)
	case a.Reserved():
		k.reservations.made.Add(1)
	}
}
