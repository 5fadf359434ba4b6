package keyspace

// How many keys a command may have that holds the shards of all of them: about a
// millisecond of work, and no more than a command does on an event loop. One of more keys
// claims them instead.
const (
	mostHeldReads   = 8 << 10
	mostHeldWrites  = 2 << 10
	mostHeldClauses = 512
)

// claim claims spots, which lie in set, at the latest instant of the batch's and those of
// the shards, until Release. Meanwhile nothing is done with the handle but visits of them.
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

// endClaim gives up what claim has claimed.
func (v *Handle) endClaim() {
	v.leave() // if something has panicked
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

// enter locks the shard of a key that the handle has claimed, unless it is inside, at the
// instant of the claim, whatever others have done there since.
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

// leave ends enter, unless the handle has left.
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
