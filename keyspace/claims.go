package keyspace

import (
	"math/bits"
	"slices"
	"sync"
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
