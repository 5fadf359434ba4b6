package keyspace

import (
	"math/bits"
	"slices"
	"sync"
)

// claim lets a command with very many keys run without the locks of all their shards. Holding all
// of these locks would stop all other goroutines for as long as the command runs, and for longer if
// the operating system preempts its thread. Instead the command has exclusive use of its keys until
// it is done, and locks a shard only while it works on a few of its keys. It is as atomic as with
// all shards locked, but only goroutines that need one of its keys wait for its end.
//
// All changes by the command have the same instant. While the claim lasts, commands that use other
// keys of the same shards may happen at later instants.
type claim struct {
	// one is locked for writing by the handle that has claimed keys, the only one at that time. So
	// at most one handle has a claim, and two claims cannot deadlock. A goroutine that needs
	// claimed keys locks one for reading, while it has no shard locked. It then locks its shards,
	// and only then unlocks one. So the next claim cannot overtake that goroutine.
	one sync.RWMutex
	// marks is a hash table with open addressing. It has a part of the hash of each claimed key; 0
	// is a free slot. A goroutine whose key has by chance the same mark as a claimed key waits as
	// well. The table does not change while a shard is claimed.
	marks []uint32
}

// anyHash, given as the hash of a key, stands for all keys of a shard.
const anyHash = 0

// maxClaimKept is the largest capacity of marks, in elements of 4 bytes, that is kept after a
// claim.
const maxClaimKept = 256 << 10

// fill replaces the table by one with the marks of spots. The table has at least twice as many
// slots as there are spots.
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

// slot returns the index of the slot in which the mark of hash h is or would be stored, and the
// mark. The mark is the upper half of h, so that keys which share a slot by the lower bits of their
// hashes have different marks. A mark is never 0.
func (c *claim) slot(h uint64) (at int, mark uint32) {
	mark = max(uint32(h>>32), 1)
	mask := len(c.marks) - 1
	at = int(h) & mask
	for c.marks[at] != 0 && c.marks[at] != mark {
		at = (at + 1) & mask
	}
	return at, mark
}

// has reports whether a key with hash h is claimed. For [anyHash] it returns true. It may also
// return true by chance for a key that is not claimed: see marks.
func (c *claim) has(h uint64) bool {
	if h == anyHash {
		return true
	}
	at, mark := c.slot(h)
	return c.marks[at] == mark
}

func (c *claim) hasOne(spots []spot) bool {
	return slices.ContainsFunc(spots, func(p spot) bool { return c.has(p.hash) })
}
