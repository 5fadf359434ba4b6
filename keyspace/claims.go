package keyspace

import (
	"math/bits"
	"slices"
	"sync"
)

// claim lets a command with very many keys run without the locks of all their shards. Those would
// stop all other goroutines for as long as the command runs, and for longer if the operating system
// preempts its thread. Instead the command has exclusive use of its keys until it is done, and
// locks a shard only while it works on a few of its keys. It is as atomic as with all shards
// locked, but only goroutines that need one of its keys wait for its end.
//
// All that the command does happens at one instant. Meanwhile other commands may reach later
// instants with other keys of the same shards, but not with the claimed keys.
type claim struct {
	// one is locked for writing by the handle that has claimed keys. So there is at most one such
	// handle, and no two of them wait for each other. A goroutine that needs claimed keys locks it
	// for reading, while it holds no shard, and locks its shards before it unlocks it: the next
	// command with a claim cannot overtake it.
	one sync.RWMutex
	// marks is a hash table with open addressing that has a part of the hash of each claimed key; 0
	// is a free slot. A goroutine whose key has by chance the same mark as a claimed key waits as
	// well. The table does not change while a shard is claimed.
	marks []uint32
}

// anyHash stands for all keys of a shard.
const anyHash = 0

// maxClaimKept is the largest number of marks for which a claim keeps memory.
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

// slot returns the index at which the mark of hash h is or would be stored, and the mark: the upper
// half of h, so that keys which share a slot by their lower bits have different marks.
func (c *claim) slot(h uint64) (at int, mark uint32) {
	mark = max(uint32(h>>32), 1)
	mask := len(c.marks) - 1
	at = int(h) & mask
	for c.marks[at] != 0 && c.marks[at] != mark {
		at = (at + 1) & mask
	}
	return at, mark
}

// has reports whether a key with hash h is claimed. It may be true by chance: see marks.
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
