package keyspace

import (
	"errors"
	"slices"
)

// Lock locks the shards of refs until Release. Everything the handle does in between
// happens at one instant, which is read once they are locked, and no other handle sees
// a state in between. Only keys of refs may be touched; methods
// that concern a whole database need [Handle.LockAll]. The handle must not hold
// anything yet.
func (v *Handle) Lock(refs []Ref) {
	var set shardSet
	for i := range refs {
		set.add(int(v.ks.hash(refs[i].Key) >> v.ks.shift))
	}
	v.lockSet(&set, func(c *claim) bool {
		return slices.ContainsFunc(refs, func(r Ref) bool { return c.has(v.ks.hash(r.Key)) })
	})
	v.readLocked()
}

// LockAll is [Handle.Lock] for all keys of all databases.
func (v *Handle) LockAll() {
	var set shardSet
	for i := range v.ks.shards {
		set.add(i)
	}
	v.lockSet(&set, anyKey)
	v.readLocked()
}

// readLocked moves the instant of what is locked to that of the clock. Scripts that ran
// before, in the same batch or on another goroutine while this one waited, had the batch's:
// limiters that name an entry by the microsecond of TIME would take two calls for one.
func (v *Handle) readLocked() {
	if now := v.ks.clock.Now(); now > v.now {
		v.now = now
		v.held.each(func(i int) { v.ks.shards[i].last = now })
	}
}

// anyKey is the claimed of [Handle.lockSet] for all keys of the shards.
func anyKey(*claim) bool { return true }

// lockSet locks in ascending order, as everybody does who locks more than one shard,
// which is why nobody waits for ever. claimed reports whether somebody claims one of the
// keys: that is waited for, holding nothing.
func (v *Handle) lockSet(set *shardSet, claimed func(c *claim) bool) {
	if v.holding {
		panic("keyspace: the handle holds keys already")
	}
	if c := &v.ks.claim; v.lockAll(set) && claimed(c) {
		v.unlockAll(set)
		c.one.RLock()
		v.lockAll(set)
		c.one.RUnlock()
	}
	v.followReset(set)
	set.each(func(i int) { v.ks.shards[i].last = v.now })
	v.held, v.holding = *set, true
}

// lockAll locks the shards of set, moves the handle's instant to the latest of theirs, and
// reports whether somebody claims keys of one of them.
func (v *Handle) lockAll(set *shardSet) (claims bool) {
	set.each(func(i int) {
		s := &v.ks.shards[i]
		s.mu.Lock()
		v.now = max(v.now, s.last)
		claims = claims || s.claimed
	})
	return claims
}

func (v *Handle) unlockAll(set *shardSet) {
	set.each(func(i int) { v.ks.shards[i].mu.Unlock() })
}

// Unlock ends a Hold. It does nothing if there is none.
func (v *Handle) Unlock() {
	if !v.holding {
		return
	}
	if v.serving {
		v.endServing()
	}
	v.holding, v.refused, v.slack = false, false, 0
	v.known.n = 0 // the keys of a transaction may be gone before the batch is
	if !v.recorder.Empty() {
		if v.recorder.Worthwhile() {
			v.condense()
		}
		v.commit()
	}
	if v.observed.told {
		v.expireSeen()
	}
	if v.claimed.any {
		v.endClaim()
	}
	v.unlockAll(&v.held)
	v.held = shardSet{}
	if v.observed.told {
		v.unlocked()
	}
}

// overdraft is how far beyond the bound what has begun may go on: twice what a
// transaction can queue.
const overdraft = 32 << 20

// Full reports whether memory is at its maximum, so that new keys are refused.
func (v *Handle) Full() bool { return v.full() }

// Lacks reports whether n bytes more would bring memory to its maximum. Who makes much of
// a short command asks before; the others are refused once it is full.
func (v *Handle) Lacks(n int64) bool { return v.ks.mem.full(v.slack - n) }

// Begin says that what is locked has begun and is to come to its end: until Release it is
// refused nothing for want of memory, unless it goes far beyond the bound. Whoever calls
// it has found before that memory is not full, or that what is to come needs none.
func (v *Handle) Begin() {
	if v.holding {
		v.slack = overdraft
	}
}

// BeginFreeing is Begin for what ends with less memory, or lifts a limit: nothing of it is refused
// for want of memory.
func (v *Handle) BeginFreeing() {
	if v.holding {
		v.slack = noBound
	}
}

// noBound is far beyond any memory, and can be added to a bound of memory.
const noBound = 1 << 61

func (v *Handle) full() bool { return v.ks.mem.full(v.slack) }

// errAbandoned ends a snapshot that could hold what must never have happened.
var errAbandoned = errors.New("keyspace: what was done last is being abandoned")

// Abandon is [Handle.Unlock] for what must never have happened although it cannot be
// undone: from now on the journal is told of nothing and no snapshot ends well, so
// that what is kept remains as it was before the Hold. The keyspace is good for
// nothing but to be closed.
func (v *Handle) Abandon() {
	v.ks.abandoned.Store(true)
	v.Unlock()
}

// lockHere holds the shards of set unless the handle holds its own already, for a
// method that needs several, with hold's claimed. It reports whether the method has to
// undo that.
func (v *Handle) lockHere(set *shardSet, claimed func(c *claim) bool) (mine bool) {
	if v.holding {
		return false
	}
	v.lockSet(set, claimed)
	return true
}

// lockSpots is lockHere for spots, which lie in set. If they are more than most they are
// claimed.
func (v *Handle) lockSpots(set *shardSet, spots []spot, most int) (mine bool) {
	if v.holding || len(spots) <= most {
		return v.lockHere(set, func(c *claim) bool { return c.hasOne(spots) })
	}
	v.claim(set, spots)
	return true
}

// unlockHere undoes lockHere and lockSpots.
func (v *Handle) unlockHere(mine bool) {
	if mine {
		v.Unlock()
	}
}
