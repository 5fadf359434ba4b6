package limiters

import (
	"hash/maphash"

	"github.com/cellserver/cellserver/limit"
)

// topTable finds the keys that occur most often, in bounded memory: every key of a
// database has one slot by its hash, a hit adds to the slot, and a hit of another key
// takes one away until the slot is free for it. A frequent key thus keeps its slot
// against any number of rare ones (the majority vote of Boyer and Moore, per slot). A key
// whose slot is taken when it first comes gets the neighbour of that if it is free, so that
// a few keys are all counted. A count is never above what was noted.
type topTable struct {
	slots  []topSlot
	more   []topDetail // of each slot
	total  int64       // occurrences of all keys, halved with them
	recent recentCount // of all keys
	seen   int64       // what locate has looked at
}

// topSlot is what most occurrences look at, in a cache line.
type topSlot struct {
	hash   uint64
	count  int64
	recent recentCount
	span
	db int
}

// topDetail is what is known of the key of a slot beside its counts.
type topDetail struct {
	key []byte
	manner
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

// locate computes the hashes of keys, and looks at all of their slots, so that the memory comes
// at the same time and not for one after the other.
func (t *topTable) locate(keys []notedKey) {
	if t.slots == nil {
		t.slots, t.more = make([]topSlot, topSlots), make([]topDetail, topSlots)
	}
	for i := range keys {
		k := &keys[i]
		k.hash = topHash(k.db, k.key)
		t.seen += t.slots[k.hash%topSlots].count // its neighbour comes with it, mostly
	}
}

// add notes the occurrences of a key that k stands for at now, the last of which was as is
// says, unless that is nil.
func (t *topTable) add(k *notedKey, now limit.Instant, is *detail) {
	t.total += k.weight
	t.recent.add(now, k.weight)
	if len(k.key) > topKey {
		return
	}
	if t.slots == nil {
		t.locate(nil)
	}
	at := k.hash % topSlots
	s := &t.slots[at]
	if s.count > 0 && s.hash != k.hash {
		if beside := &t.slots[at^1]; beside.count == 0 || beside.hash == k.hash {
			at, s = at^1, beside
		}
	}
	switch {
	case s.hash == k.hash && s.count > 0:
		s.count += k.weight
	case s.count > k.weight:
		s.count -= k.weight
		return
	default:
		*s = topSlot{hash: k.hash, count: k.weight, db: k.db}
		more := &t.more[at]
		more.key, more.known = append(more.key[:0], k.key...), false
	}
	s.recent.add(now, k.weight)
	s.span.note(now)
	if is != nil {
		t.more[at].note(is)
	}
}

// halve forgets half of everything, so that the table shows what happens now.
func (t *topTable) halve() {
	t.total /= 2
	for i := range t.slots {
		t.slots[i].count /= 2
	}
}

// reset forgets everything.
func (t *topTable) reset() {
	t.total, t.recent = 0, recentCount{}
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
	for i := range t.slots {
		if s := &t.slots[i]; s.count > 0 {
			name := topName{s.db, string(t.more[i].key)}
			n := sum[name]
			sum[name] = topCount{n.count + s.count, n.recent + s.recent.at(now)}
		}
	}
	return t.total
}

// notedKey is a key on its way to a table of RL.TOP. It lies in the input of its
// batch, which stays until the batch ends.
type notedKey struct {
	key    []byte
	db     int
	is     int    // index of what its call was like, -1 if that is not kept
	weight int64  // how many calls it stands for
	like   int64  // how many calls of its group are like it
	hash   uint64 // of key and db
}
