package limiters

import (
	"hash/maphash"

	"github.com/cellserver/cellserver/limit"
)

// topTable finds the most frequent keys in bounded memory. Each key of a database has one slot by
// its hash. A call of the slot's key adds to its count, and a call of another key subtracts until
// the slot is free for that key. So a frequent key keeps its slot against any number of rare ones
// (the majority vote algorithm of Boyer and Moore, for each slot). A key whose slot is taken uses
// the neighbouring slot if that is free, so that a few keys are all counted. A count is never
// higher than the number of noted calls.
type topTable struct {
	slots  []topSlot
	more   []topDetail // parallel to slots
	total  int64       // calls of all keys, halved together with the slots
	recent recentCount // calls of all keys
	seen   int64       // a sum that makes locate's reads have a use
}

// topSlot has the fields that most calls need, in one cache line.
type topSlot struct {
	hash   uint64
	count  int64
	recent recentCount
	span
	db int
}

// topDetail has the key of a slot and its details.
type topDetail struct {
	key []byte
	manner
}

const (
	topSlots = 512
	// topKey is the length of the longest key that is noted. It keeps the table of a worker below
	// a megabyte whatever keys a client sends.
	topKey = 1 << 10
)

var topSeed = maphash.MakeSeed()

// topHash returns the hash of a key in a database. The factor is odd, so that equal keys in
// different databases differ in every part of their hashes.
func topHash(db int, key []byte) uint64 {
	return maphash.Bytes(topSeed, key) + uint64(db)*0x9e3779b97f4a7c15
}

// locate computes the hashes of keys and reads all of their slots, so that the cache misses
// overlap.
func (t *topTable) locate(keys []notedKey) {
	if t.slots == nil {
		t.slots, t.more = make([]topSlot, topSlots), make([]topDetail, topSlots)
	}
	for i := range keys {
		k := &keys[i]
		k.hash = topHash(k.db, k.key)
		t.seen += t.slots[k.hash%topSlots].count // the neighbouring slot is mostly in the same cache line
	}
}

// add adds the calls that k stands for at now. is has the details of the latest of them, or is
// nil.
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

// halve halves all counts, so that the table shows recent calls.
func (t *topTable) halve() {
	t.total /= 2
	for i := range t.slots {
		t.slots[i].count /= 2
	}
}

// reset clears the counts.
func (t *topTable) reset() {
	t.total, t.recent = 0, recentCount{}
	for i := range t.slots {
		t.slots[i].count = 0
	}
}

// topName is a key and its database.
type topName struct {
	db  int
	key string
}

// topCount has the number of calls on a key: all of them, and those within the last recentPeriod.
type topCount struct {
	count  int64
	recent float64
}

// collect adds the counts of the table to sum, and returns the total of all keys.
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

// notedKey is a key that was noted for a table of RL.TOP. It refers to the input of its batch,
// which is kept until the batch ends.
type notedKey struct {
	key    []byte
	db     int
	is     int    // index of the details of its call, or -1
	weight int64  // the number of calls that it stands for
	like   int64  // the number of calls of its group that its details stand for
	hash   uint64 // of key and db
}
