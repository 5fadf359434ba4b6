package keyspace

import (
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Journal is where effects go, in the order in which they happen to each key. Its
// methods are called with shards locked: they must be quick and must not use the
// keyspace.
type Journal interface {
	// Append adds a record, all effects of one command together, and returns the
	// position behind it, which is never 0. It copies what it keeps of record, and takes
	// over refs: long values that are no part of its bytes but belong between them, each
	// where its At says. Their bytes stay what they are until it has released them.
	// Nothing in the record happened later than at.
	Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64)
	// Refuses reports whether what would be appended now could not be kept. Then
	// decisions that would have an effect are limit.ErrNotKept, and nothing changes.
	Refuses() bool
}

// SetJournal makes j receive all effects from now on. It must be called before
// other goroutines use the keyspace.
func (ks *Keyspace) SetJournal(j Journal) {
	ks.journal = j
	ks.attentive.Store(true)
}

// refuses reports whether nothing may be changed now. Methods that cannot fail do
// not ask: their callers do, through [View.Refuses].
func (v *View) refuses() bool {
	switch {
	case v.ks.journal == nil:
		return false
	case v.holding && len(v.recorder.buf) > 0:
		// A script or transaction that has begun is ended, and its record as a whole is
		// kept or lost: half of it would be worse, and not undone by refusing the rest.
		return v.overfull()
	case v.refused:
		return true // nor may the end of one happen whose beginning did not
	}
	refuses := v.ks.journal.Refuses()
	v.refused = refuses && v.holding
	return refuses
}

// maxHeldRecord is how large the effects of one Hold may grow before further ones
// are refused, without those that later ones make void: a record is kept whole or not
// at all, and who loads it has all of it in memory.
const maxHeldRecord = 64 << 20

// overfull reports whether what is held has had as many effects as a record takes.
func (v *View) overfull() bool {
	if v.recorder.due() {
		v.condense()
	}
	return v.recorder.size() >= maxHeldRecord
}

// commit hands over what has been recorded. It is called before the shards are
// unlocked, so that the order in the journal is the order in which it happened.
func (v *View) commit() {
	r := &v.recorder
	if v.ks.abandoned.Load() {
		shared.ReleaseAll(r.refs)
		r.reset()
		return
	}
	v.position = v.ks.journal.Append(r.buf, r.refs, v.now)
	v.effects++
	v.unsettled += r.size()
	r.reset()
}

// TakePosition returns the journal's position behind what this view did since the
// last call, or 0 if that had no effects: before the journal has got there nobody
// may be told.
func (v *View) TakePosition() uint64 {
	p := v.position
	v.position, v.unsettled = 0, 0
	return p
}

// Unsettled is how many bytes of effects there were since the last TakePosition.
func (v *View) Unsettled() int { return v.unsettled }

// Effects is how many records this view has ever handed to the journal.
func (v *View) Effects() uint64 { return v.effects }

// Refuses reports whether the journal cannot keep effects now, or no more of them in
// what is held. Commands whose
// methods here cannot fail, such as a deletion, must not be run then.
func (v *View) Refuses() bool { return v.refuses() }
