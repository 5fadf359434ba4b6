package keyspace

import (
	"math"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/shared"
)

// SetJournal makes j the journal, which receives all effects from now on. If j is nil, effects are
// not recorded. While other goroutines use the keyspace, SetJournal must be called inside
// [Keyspace.Exclusively], so that all effects of a batch go to the same journal.
func (ks *Keyspace) SetJournal(j Journal) {
	if j == nil {
		ks.journal.Store(nil)
		return
	}
	ks.journal.Store(&j)
	ks.attentive.Store(true)
}

// refuses reports whether the journal refuses effects now, so that the handle must change nothing.
// Under locks a refusal lasts until Unlock. Methods that cannot fail do not call refuses: their
// callers call [Handle.Refuses] before.
func (v *Handle) refuses() bool {
	j := v.ks.journal.Load()
	switch {
	case j == nil:
		return false
	case v.holding && !v.recorder.Empty():
		// A script or transaction that has already had effects is completed, and its record is kept
		// or lost as a whole. Refusing the rest would not undo these effects, and half of a record
		// would be worse than none.
		return v.overfull()
	case v.refused:
		return true // an earlier effect was refused, so this one is refused too
	}
	refuses := (*j).Refuses()
	v.refused = refuses && v.holding
	return refuses
}

// overfull reports whether the effects under the present locks have reached the maximum size of a
// record. It first condenses a record that has become long enough for that.
func (v *Handle) overfull() bool {
	if v.recorder.Due() {
		v.condense()
	}
	return v.recorder.Size() >= effect.MaxRecord
}

// commit gives the recorded effects to the journal and empties the recorder. Without a journal, and
// after Abandon, the effects are dropped. commit is called before the shards are unlocked, so that
// the order in the journal is the order in which the effects happened.
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

// TakePosition returns the position in the journal after the last effect that this handle has given
// to it since the last call of TakePosition, or 0 if there was none. Replies must be held back
// until the journal has kept the effects up to that position. TakePosition resets Unsettled.
func (v *Handle) TakePosition() uint64 {
	p := v.position
	v.position, v.unsettled = 0, 0
	return p
}

// Unsettled returns the number of bytes of effects that this handle has given to the journal since
// the last call of [Handle.TakePosition].
func (v *Handle) Unsettled() int { return v.unsettled }

// Effects returns the number of records that this handle has given to the journal since it was
// made.
func (v *Handle) Effects() uint64 { return v.effects }

// Refuses reports whether the journal cannot keep effects now, or no more effects under the present
// locks. Then the caller must not call a method that changes keys but returns no error, such as
// [Handle.Delete].
func (v *Handle) Refuses() bool { return v.refuses() }

// stored returns the shard of key and the key's entry. The handle has locked or claimed the key.
func (v *Handle) stored(db int, key string) (s *shard, e entry.Entry) {
	h := v.ks.hash([]byte(key))
	s = &v.ks.shards[int(h>>v.ks.shift)]
	return s, s.get(db, h, []byte(key))
}

// condense makes the record smaller, as [effect.Record.Condense] says, and frees the scratch memory
// for trees. It reads collections in the store, which is safe since a handle that changes a
// collection has its shard locked. It does not read limiters, since a handle that has claimed them
// does not have their shards locked.
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
