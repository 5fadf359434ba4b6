package keyspace

import (
	"math"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/shared"
)

// SetJournal makes j receive all effects from now on; nil keeps nothing. While other
// goroutines use the keyspace it is called inside [Keyspace.Alone], so that no effect of a
// batch goes to another journal than the rest of it.
func (ks *Keyspace) SetJournal(j Journal) {
	if j == nil {
		ks.journal.Store(nil)
		return
	}
	ks.journal.Store(&j)
	ks.attentive.Store(true)
}

// refuses reports whether nothing may be changed now. Methods that cannot fail do
// not ask: their callers do, through [Handle.Refuses].
func (v *Handle) refuses() bool {
	j := v.ks.journal.Load()
	switch {
	case j == nil:
		return false
	case v.holding && !v.recorder.Empty():
		// A script or transaction that has begun is ended, and its record as a whole is
		// kept or lost: half of it would be worse, and not undone by refusing the rest.
		return v.overfull()
	case v.refused:
		return true // nor may the end of one happen whose beginning did not
	}
	refuses := (*j).Refuses()
	v.refused = refuses && v.holding
	return refuses
}

// overfull reports whether what is locked has had as many effects as a record takes.
func (v *Handle) overfull() bool {
	if v.recorder.Due() {
		v.condense()
	}
	return v.recorder.Size() >= effect.MaxRecord
}

// commit hands over what has been recorded. It is called before the shards are
// unlocked, so that the order in the journal is the order in which it happened.
func (v *Handle) commit() {
	r := &v.recorder
	buf, refs := r.Parts()
	j := v.ks.journal.Load()
	if j == nil || v.ks.abandoned.Load() {
		shared.ReleaseAll(refs)
		r.Reset()
		return
	}
	v.position = (*j).Append(buf, refs, v.now)
	v.effects++
	v.unsettled += r.Size()
	r.Reset()
}

// TakePosition returns the journal's position behind what this handle did since the
// last call, or 0 if that had no effects: before the journal has got there nobody
// may be told.
func (v *Handle) TakePosition() uint64 {
	p := v.position
	v.position, v.unsettled = 0, 0
	return p
}

// Unsettled is how many bytes of effects there were since the last TakePosition.
func (v *Handle) Unsettled() int { return v.unsettled }

// Effects is how many records this handle has ever handed to the journal.
func (v *Handle) Effects() uint64 { return v.effects }

// Refuses reports whether the journal cannot keep effects now, or no more of them in
// what is locked. Commands whose
// methods here cannot fail, such as a deletion, must not be run then.
func (v *Handle) Refuses() bool { return v.refuses() }

// stored returns what key holds, which the handle has locked.
func (v *Handle) stored(db int, key string) (s *shard, e entry.Entry) {
	h := v.ks.hash([]byte(key))
	s = &v.ks.shards[int(h>>v.ks.shift)]
	return s, s.get(db, h, []byte(key))
}

// condense condenses the record. It looks at collections in the store: whoever changes one
// holds its shard. Limiters it does not look at, since a claim does not hold theirs.
func (v *Handle) condense() {
	weigh := func(db int, key string) int {
		s, e := v.stored(db, key)
		switch {
		case !base(e.Kind).IsCollection():
			return math.MaxInt
		case isTree(e.Kind):
			return int(s.tree(db, e.Value).Cost)
		}
		return len(e.Value)
	}
	v.recorder.Condense(weigh, func(db int, key string) entry.Entry {
		s, e := v.stored(db, key)
		return s.whole(db, e, nil)
	})
	v.recorder.flat = nil
}
