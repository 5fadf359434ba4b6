package keyspace

import (
	"math"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/shared"
)

// SetJournal makes j receive all effects from now on; with nil they are not recorded. While other
// goroutines use the keyspace it must be called inside [Keyspace.Exclusively], so that all effects of a
// batch go to the same journal.
func (ks *Keyspace) SetJournal(j Journal) {
	if j == nil {
		ks.journal.Store(nil)
		return
	}
	ks.journal.Store(&j)
	ks.attentive.Store(true)
}

// refuses reports whether nothing may be changed now. Methods that cannot fail do not call it:
// their callers call [Handle.Refuses] before.
func (v *Handle) refuses() bool {
	j := v.ks.journal.Load()
	switch {
	case j == nil:
		return false
	case v.holding && !v.recorder.Empty():
		// A script or transaction that has begun comes to its end, and its record is kept or lost
		// as a whole. Half of it would be worse, and refusing the rest would not undo it.
		return v.overfull()
	case v.refused:
		return true // the beginning was refused, so the rest is refused too
	}
	refuses := (*j).Refuses()
	v.refused = refuses && v.holding
	return refuses
}

// overfull reports whether the effects under the present locks fill a record.
func (v *Handle) overfull() bool {
	if v.recorder.Due() {
		v.condense()
	}
	return v.recorder.Size() >= effect.MaxRecord
}

// commit gives the journal what has been recorded. It is called before the shards are unlocked, so
// that the order in the journal is the order in which the effects happened.
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

// TakePosition returns the position of the journal behind all effects of this handle since the last
// call, or 0 if there were none. Replies must be held back until the journal has kept the effects
// up to that position.
func (v *Handle) TakePosition() uint64 {
	p := v.position
	v.position, v.unsettled = 0, 0
	return p
}

// Unsettled returns the number of bytes of effects since the last TakePosition.
func (v *Handle) Unsettled() int { return v.unsettled }

// Effects returns the number of records that this handle has given to the journal.
func (v *Handle) Effects() uint64 { return v.effects }

// Refuses reports whether the journal cannot keep effects now, or no more of them under the present
// locks. Then commands must not run whose methods here cannot fail, such as a deletion.
func (v *Handle) Refuses() bool { return v.refuses() }

// stored returns the shard and the entry of key, which the handle has locked.
func (v *Handle) stored(db int, key string) (s *shard, e entry.Entry) {
	h := v.ks.hash([]byte(key))
	s = &v.ks.shards[int(h>>v.ks.shift)]
	return s, s.get(db, h, []byte(key))
}

// condense condenses the record. It reads collections in the store, which is safe since a handle
// that changes a collection holds its shard. It does not read limiters, since a claim does not hold
// their shards.
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
