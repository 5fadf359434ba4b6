package keyspace

import (
	"errors"
	"slices"
)

// Lock locks the shards of refs until [Handle.Unlock]. All that the handle does until then happens
// at one instant, which is read once the shards are locked, and no other handle sees a state in
// between. Only keys of refs may be used; methods that concern a whole database need
// [Handle.LockAll]. The handle must not hold anything yet.
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

// readLocked advances the instant of the locked shards to the clock. Two scripts would have the
// same instant otherwise, in one batch, or if one waits for the lock of the other. A limiter
// written as a script that names an entry by the microsecond of TIME would then take two calls for
// one.
func (v *Handle) readLocked() {
	if now := v.ks.clock.Now(); now > v.now {
		v.now = now
		v.held.each(func(i int) { v.ks.shards[i].last = now })
	}
}

// anyKey is the argument claimed of [Handle.lockSet] for all keys of the shards.
func anyKey(*claim) bool { return true }

// lockSet locks the shards of set in ascending order, as all code does that locks more than one
// shard: this prevents deadlock. claimed reports whether one of the keys is claimed; lockSet waits
// for the end of such a claim, while it holds no shard.
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

// lockAll locks the shards of set, advances the handle's instant to the latest of theirs, and
// reports whether keys of one of them are claimed.
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

// Unlock ends a Lock, a LockAll or a claim. It does nothing if the handle holds nothing.
func (v *Handle) Unlock() {
	if !v.holding {
		return
	}
	if v.serving {
		v.endServing()
	}
	v.holding, v.refused, v.slack = false, false, 0
	v.known.n = 0 // the memory of a transaction's keys may be reused before the batch ends
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

// overdraft is the number of bytes by which a command that has begun may exceed the bound of
// memory: twice what a transaction can queue.
const overdraft = 32 << 20

// Full reports whether memory is at its maximum, so that new keys are refused.
func (v *Handle) Full() bool { return v.full() }

// Lacks reports whether n bytes more would bring memory to its maximum. A short command that makes
// a large value checks it before; other commands are refused only once memory is full.
func (v *Handle) Lacks(n int64) bool { return v.ks.mem.full(v.slack - n) }

// Begin says that the command which holds the locks has begun and has to come to its end: until
// Unlock it is refused nothing for lack of memory, unless it exceeds the bound by far. The caller
// has checked that memory is not full, or that the rest needs none.
func (v *Handle) Begin() {
	if v.holding {
		v.slack = overdraft
	}
}

// BeginFreeing is Begin for a command that ends with less memory in use, or that lifts a limit: it
// is refused nothing for lack of memory.
func (v *Handle) BeginFreeing() {
	if v.holding {
		v.slack = noBound
	}
}

// noBound is larger than any memory, and can be added to a bound without overflow.
const noBound = 1 << 61

func (v *Handle) full() bool { return v.ks.mem.full(v.slack) }

// errAbandoned ends a snapshot that could contain abandoned changes: see [Handle.Abandon].
var errAbandoned = errors.New("keyspace: what was done last is being abandoned")

// Abandon is [Handle.Unlock] for changes that must not be kept but cannot be undone. From now on
// the journal receives nothing and no snapshot succeeds, so that the files keep the state of before
// the Lock. The keyspace can only be closed afterwards.
func (v *Handle) Abandon() {
	v.ks.abandoned.Store(true)
	v.Unlock()
}

// lockHere locks the shards of set for a method that needs several, unless the handle holds its own
// already. claimed is that of lockSet. mine reports whether the method has to unlock them, by
// unlockHere.
func (v *Handle) lockHere(set *shardSet, claimed func(c *claim) bool) (mine bool) {
	if v.holding {
		return false
	}
	v.lockSet(set, claimed)
	return true
}

// lockSpots is lockHere for spots, whose shards are set. It claims the keys if there are more than
// most.
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
