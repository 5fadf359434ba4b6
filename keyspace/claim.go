package keyspace

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/cellserver/cellserver/limit"
)

// How many keys a command may have that holds the shards of all of them: about a
// millisecond of work, and no more than a command does on an event loop. One of more keys
// claims them instead.
const (
	mostHeldReads   = 8 << 10
	mostHeldWrites  = 2 << 10
	mostHeldClauses = 512
)

// claim is what a command of very many keys does instead of holding their shards, which
// would stop everybody for as long as it runs, and for longer where the system lets
// another thread have its processor. It has the keys to itself until it is done, and
// locks a shard only for the few keys that it works on: so it is as atomic as with all of
// them locked, and only who wants one of its keys waits until its end.
//
// All that it does happens at one instant. Others may be later than that with other keys
// of a shard, but not with these.
type claim struct {
	// one is held by whoever has claimed keys. So there is one such command at a time, and
	// none waits for another that waits for it. Those who want claimed keys take it for
	// reading, holding nothing, and lock what they need before they let it go: the next
	// command cannot overtake them.
	one sync.RWMutex
	// marks are what is kept of the hashes of the claimed keys: a table with open
	// addressing, where 0 is free. Somebody whose key has by chance the mark of another
	// waits as well. The table does not change while a shard is claimed.
	marks []uint32
}

// anyHash stands for all keys of a shard.
const anyHash = 0

// maxClaimKept is for how many marks a claim keeps room.
const maxClaimKept = 256 << 10

// fill puts the marks of spots into the table.
func (c *claim) fill(spots []spot) {
	size := 1 << bits.Len(uint(2*len(spots)))
	if size > cap(c.marks) {
		c.marks = make([]uint32, size)
	} else {
		c.marks = c.marks[:size]
		clear(c.marks)
	}
	for i := range spots {
		at, mark := c.slot(spots[i].hash)
		c.marks[at] = mark
	}
}

// slot is where the mark of h is or would be: its upper half, so that those which share a
// slot by its lower bits differ.
func (c *claim) slot(h uint64) (at int, mark uint32) {
	mark = max(uint32(h>>32), 1)
	mask := len(c.marks) - 1
	at = int(h) & mask
	for c.marks[at] != 0 && c.marks[at] != mark {
		at = (at + 1) & mask
	}
	return at, mark
}

// has reports whether a key of that hash is claimed.
func (c *claim) has(h uint64) bool {
	if h == anyHash {
		return true
	}
	at, mark := c.slot(h)
	return c.marks[at] == mark
}

// hasOne reports whether one of spots is claimed.
func (c *claim) hasOne(spots []spot) bool {
	return slices.ContainsFunc(spots, func(p spot) bool { return c.has(p.hash) })
}

// await waits until nobody claims a key of that hash. The shard is locked, by somebody
// who has locked nothing else, and is so again.
func (s *shard) await(h uint64) {
	c := &s.claim
	if !c.has(h) {
		return
	}
	s.mu.Unlock()
	c.one.RLock()
	s.mu.Lock()
	c.one.RUnlock()
}

// claimed is what a view knows of the keys that it claims.
type claimed struct {
	any    bool
	shards shardSet      // where the keys are
	inside *shard        // that the view has entered
	last   limit.Instant // which was the shard's
}

// claim claims spots, which lie in set, at the latest instant of the batch's and those of
// the shards, until Release. Meanwhile nothing is done with the view but visits of them.
func (v *View) claim(set *shardSet, spots []spot) {
	if v.holding {
		panic("keyspace: the view holds keys already")
	}
	c := &v.ks.claim
	c.one.Lock()
	c.fill(spots)
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
func (v *View) endClaim() {
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

// enter locks the shard of a key that the view has claimed, unless it is inside, at the
// instant of the claim, whatever others have done there since.
func (v *View) enter(h uint64) *shard {
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

// leave ends enter, unless the view has left.
func (v *View) leave() {
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
