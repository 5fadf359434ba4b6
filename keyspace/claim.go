package keyspace

// These constants are the maximum numbers of keys read, keys written and clauses for which a
// command locks the shards of all its keys. A command with that many keys or clauses runs for about
// a millisecond, which is also the longest time for which a command may run on an event loop. A
// command with more keys claims them instead.
const (
	maxHeldReads   = 8 << 10
	maxHeldWrites  = 2 << 10
	maxHeldClauses = 512
)

// claim reserves the keys of spots for this handle until [Handle.Unlock]. set has the shards of
// these keys. claim waits until no other handle has a claim, and panics if this handle holds keys
// already. The handle's instant advances to the latest instant of these shards; it stays the
// instant of the command. Until Unlock the handle may visit only the claimed keys.
func (v *Handle) claim(set *shardSet, spots []spot) {
	if v.holding {
		panic("keyspace: the handle holds keys already")
	}
	c := &v.ks.claim
	c.one.Lock()
	c.fill(spots)
	v.followReset(&shardSet{})
	set.each(func(i int) {
		s := &v.ks.shards[i]
		s.mu.Lock()
		s.claimed = true
		v.now = max(v.now, s.last)
		s.mu.Unlock()
	})
	v.claimed, v.holding = claimed{any: true, shards: *set}, true
}

// endClaim releases the claimed keys, advances their shards to the instant of the claim, and lets
// the next handle claim keys.
func (v *Handle) endClaim() {
	v.leave() // after a panic, the handle may still be inside a shard
	v.claimed.shards.each(func(i int) {
		s := &v.ks.shards[i]
		s.mu.Lock()
		s.claimed = false
		s.last = max(s.last, v.now)
		s.mu.Unlock()
	})
	v.claimed = claimed{}
	c := &v.ks.claim
	if cap(c.marks) > maxClaimKept {
		c.marks = nil
	}
	c.one.Unlock()
}

// enter returns the shard of a claimed key with hash h, locked. If the handle is inside another
// shard, enter first leaves that shard. Until leave, the latest instant of the shard is the instant
// of the claim, even if other handles have advanced the shard.
func (v *Handle) enter(h uint64) *shard {
	s := &v.ks.shards[h>>v.ks.shift]
	if v.claimed.inside == s {
		return s
	}
	v.leave()
	s.mu.Lock()
	v.claimed.inside, v.claimed.last = s, s.last
	s.last = v.now
	v.attend(s)
	return s
}

// leave unlocks the shard that enter has locked, if there is one. Before that it removes the
// expired keys that the handle has looked up there, and restores the shard's own instant if that is
// later than the instant of the claim.
func (v *Handle) leave() {
	s := v.claimed.inside
	if s == nil {
		return
	}
	if len(v.observed.seen) > 0 {
		v.expireSeen() // the shard of the claimed keys is still locked here
	}
	s.last = max(v.claimed.last, v.now)
	v.claimed.inside = nil
	s.mu.Unlock()
}
