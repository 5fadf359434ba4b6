package limiters

import (
	"hash/maphash"
	"sync"

	"github.com/cellserver/cellserver/limit"
)

// topTable finds the keys that occur most often, in bounded memory: every key of a
// database has one slot by its hash, a hit adds to the slot, and a hit of another key
// takes one away until the slot is free for it. A frequent key thus keeps its slot
// against any number of rare ones (the majority vote of Boyer and Moore, per slot), and
// its count is never above the truth.
type topTable struct {
	mu    sync.Mutex
	slots []topSlot // guarded by mu
	total int64     // guarded by mu: occurrences of all keys, halved with them
}

type topSlot struct {
	hash   uint64
	count  int64
	recent recentCount
	db     int
	key    []byte
}

const (
	topSlots = 512
	// topKey is the longest key that is remembered: the table of a worker then stays
	// below a megabyte whatever keys a client makes up.
	topKey = 1 << 10
)

var topSeed = maphash.MakeSeed()

// topHash is the hash of a key of a database. The factor is odd, so that equal keys
// of different databases differ in every part of their hashes.
func topHash(db int, key []byte) uint64 {
	return maphash.Bytes(topSeed, key) + uint64(db)*0x9e3779b97f4a7c15
}

// add notes weight occurrences of key at now.
func (t *topTable) add(db int, key []byte, weight int64, now limit.Instant) {
	t.total += weight
	if len(key) > topKey {
		return
	}
	if t.slots == nil {
		t.slots = make([]topSlot, topSlots)
	}
	h := topHash(db, key)
	s := &t.slots[h%topSlots]
	switch {
	case s.hash == h && s.count > 0:
		s.count += weight
	case s.count > weight:
		s.count -= weight
		return
	default:
		s.hash, s.count, s.db, s.key = h, weight, db, append(s.key[:0], key...)
		s.recent = recentCount{}
	}
	s.recent.add(now, weight)
}

// halve forgets half of everything, so that the table shows what happens now.
func (t *topTable) halve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total /= 2
	for i := range t.slots {
		t.slots[i].count /= 2
	}
}

// reset forgets everything.
func (t *topTable) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total = 0
	for i := range t.slots {
		t.slots[i].count = 0
	}
}

// topName names a key and its database.
type topName struct {
	db  int
	key string
}

// topCount is how often a key occurred, and how often in the last recentPeriod.
type topCount struct {
	count  int64
	recent float64
}

// collect adds the table's counts to sum, and returns the total behind them.
func (t *topTable) collect(now limit.Instant, sum map[topName]topCount) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		if s := &t.slots[i]; s.count > 0 {
			name := topName{s.db, string(s.key)}
			n := sum[name]
			sum[name] = topCount{n.count + s.count, n.recent + s.recent.at(now)}
		}
	}
	return t.total
}

// notedKey is a key on its way to a table of RL.TOP. It lies in the input of its
// batch, which stays until the batch ends.
type notedKey struct {
	db  int
	key []byte
}
