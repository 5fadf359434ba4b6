package keyspace

// The largest numbers of keys or clauses of a command that locks the shards of all its keys: about
// a millisecond of work, no more than a command does on an event loop. A command with more keys
// claims them instead.
const (
	maxHeldReads   = 8 << 10
	maxHeldWrites  = 2 << 10
	maxHeldClauses = 512
)

// claim claims the keys of spots, whose shards are set, until [Handle.Unlock]. The command happens
// at the latest of the batch's instant and the instants of these shards. Until Unlock the handle
// may only visit these keys.
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

// endClaim releases the claim.
func (v *Handle) endClaim() {
	v.leave() // after a panic it may still be inside a shard
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

// enter locks the shard of a claimed key, unless the handle is inside it already. It sets the
// shard's instant to that of the claim, even if other handles have advanced it meanwhile.
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

// leave unlocks the shard that enter has locked, if there is one.
func (v *Handle) leave() {
	s := v.claimed.inside
	if s == nil {
		return
	}
	if len(v.observed.seen) > 0 {
		v.expireSeen() // while their shard is locked
	}
	s.last = max(v.claimed.last, v.now)
	v.claimed.inside = nil
	s.mu.Unlock()
}
