package keyspace

import (
	"errors"
	"slices"
)

// Lock locks the shards of the keys refs until [Handle.Unlock]. All that the handle does until then
// happens at one instant, which Lock reads from the clock once the shards are locked, and no other
// handle sees a state in between. Until Unlock the handle may use only the keys of refs; methods
// that concern a whole database need [Handle.LockAll]. Lock waits until none of the keys is
// claimed. It panics if the handle holds keys already.
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

// LockAll does for all keys of all databases what [Handle.Lock] does for some keys.
func (v *Handle) LockAll() {
	var set shardSet
	for i := range v.ks.shards {
		set.add(i)
	}
	v.lockSet(&set, anyKey)
	v.readLocked()
}

// readLocked advances the instants of the handle and of the locked shards to the clock. Otherwise
// two scripts would have the same instant if they ran in one batch, or if one had waited for the
// lock of the other. A limiter may be a script that names each call by the microseconds of TIME.
// Such a limiter would then count two calls as one.
func (v *Handle) readLocked() {
	if now := v.ks.clock.Now(); now > v.now {
		v.now = now
		v.held.each(func(i int) { v.ks.shards[i].last = now })
	}
}

// anyKey is the argument claimed of [Handle.lockSet] if all keys of the shards are needed. It
// returns true.
func anyKey(*claim) bool { return true }

// lockSet locks the shards of set until Unlock. It locks them in ascending order of their indices,
// as all code does that locks more than one shard: this prevents deadlock. claimed reports whether
// one of the needed keys is claimed. In that case lockSet waits for the end of the claim, while it
// has no shard locked. The instants of the handle and of the shards become the latest of them.
// lockSet panics if the handle holds keys already.
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

// lockAll locks the shards of set in ascending order, advances the handle's instant to the latest
// of the shards' instants, and reports whether any key of these shards is claimed.
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

// Unlock ends a Lock, a LockAll or a claim. It gives the recorded effects to the journal as one
// record, unlocks the shards and then notifies the observer. It does nothing if the handle holds no
// keys.
func (v *Handle) Unlock() {
	if !v.holding {
		return
	}
	if v.pops.Serving() {
		v.pops.End()
	}
	v.holding, v.refused, v.slack = false, false, 0
	v.known.n = 0 // the memory of the keys of a transaction may be reused before the batch ends
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
// memory. It is twice the number of bytes that a transaction can queue.
const overdraft = 32 << 20

// Full reports whether memory is at its maximum, so that new keys are refused. After Begin the
// maximum is higher by the number of bytes by which the command may exceed it.
func (v *Handle) Full() bool { return v.full() }

// Lacks reports whether n bytes more would bring memory to its maximum. A command that makes a
// large value from a short request calls Lacks first, and fails if Lacks returns true. Other
// commands are refused only once memory is full.
func (v *Handle) Lacks(n int64) bool { return v.ks.mem.full(v.slack - n) }

// Begin marks the command that holds the locks as begun, so that it can be completed. Until Unlock
// nothing is refused for lack of memory, unless the bound of memory is exceeded by 32 MiB. The
// caller has checked that memory is not full, or that the rest of the command needs no memory.
// Without locks Begin does nothing.
func (v *Handle) Begin() {
	if v.holding {
		v.slack = overdraft
	}
}

// BeginFreeing does what [Handle.Begin] does for a command that ends with less memory in use, or
// that lifts a limit: until Unlock nothing at all is refused for lack of memory.
func (v *Handle) BeginFreeing() {
	if v.holding {
		v.slack = noBound
	}
}

// noBound is a slack that is larger than any memory. It can be added to a bound without overflow.
const noBound = 1 << 61

func (v *Handle) full() bool { return v.ks.mem.full(v.slack) }

// errAbandoned is the error of a snapshot that could contain changes to be abandoned: see
// [Handle.Abandon].
var errAbandoned = errors.New("keyspace: what was done last is being abandoned")

// Abandon does what [Handle.Unlock] does, for changes that must not be kept but cannot be undone.
// From now on the journal receives nothing and no snapshot succeeds, so that the files keep the
// state from before the Lock. After Abandon the only use of the keyspace is to close it.
func (v *Handle) Abandon() {
	v.ks.abandoned.Store(true)
	v.Unlock()
}

// lockHere locks the shards of set for a method that needs several shards, unless the handle holds
// keys already. claimed is the argument of lockSet. mine is true if lockHere has locked the shards;
// the method then has to unlock them by unlockHere.
func (v *Handle) lockHere(set *shardSet, claimed func(c *claim) bool) (mine bool) {
	if v.holding {
		return false
	}
	v.lockSet(set, claimed)
	return true
}

// lockSpots does what lockHere does, for the keys of spots. set has the shards of these keys. If
// there are more than most keys, lockSpots claims them instead of locking all their shards.
func (v *Handle) lockSpots(set *shardSet, spots []spot, most int) (mine bool) {
	if v.holding || len(spots) <= most {
		return v.lockHere(set, func(c *claim) bool { return c.hasOne(spots) })
	}
	v.claim(set, spots)
	return true
}

// unlockHere unlocks the shards that lockHere or lockSpots has locked. mine is the result of that
// function; if it is false, unlockHere does nothing.
func (v *Handle) unlockHere(mine bool) {
	if mine {
		v.Unlock()
	}
}
