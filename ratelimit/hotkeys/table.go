package hotkeys

import (
	"hash/maphash"

	"github.com/cellserver/cellserver/limit"
)

// topTable finds the most frequent keys in bounded memory. The hash of a key selects its slot. A
// call on the slot's key adds to its count, and a call on another key subtracts from it until the
// slot is free for the other key. So a frequent key keeps its slot against any number of rare keys
// (the majority vote algorithm of Boyer and Moore, in each slot). A key whose slot is taken uses
// the neighbouring slot if that is free, so that a few keys are all counted. The count of a key is
// never higher than the sum of the weights of its samples.
type topTable struct {
	slots  []topSlot
	more   []topDetail // the details of each slot, at the same index as in slots
	total  int64       // number of calls on all keys; halved together with the counts of the slots
	recent recentCount // number of recent calls on all keys
	seen   int64       // a sum of counts that locate has read, so that the compiler does not remove the reads
}

// topSlot has the fields of a slot that most calls need, in one cache line.
type topSlot struct {
	hash   uint64
	count  int64
	recent recentCount
	span
	db int
}

// topDetail has the other fields of a slot: the key and its details.
type topDetail struct {
	key []byte
	manner
}

const (
	topSlots = 512
	// topKey is the maximum length in bytes of a key that is kept. It bounds the table of a recorder
	// to less than a megabyte, whatever keys clients send.
	topKey = 1 << 10
)

var topSeed = maphash.MakeSeed()

// topHash returns the hash of key in the database db. The factor of db is odd, so that the hashes
// of a key in different databases select different slots, as far as there are enough slots.
func topHash(db int, key []byte) uint64 {
	return maphash.Bytes(topSeed, key) + uint64(db)*0x9e3779b97f4a7c15
}

// locate sets the hash of each sample in keys, and reads the slots of all of them one after
// another, so that their cache misses overlap. It creates the slots if necessary.
func (t *topTable) locate(keys []notedKey) {
	if t.slots == nil {
		t.slots, t.more = make([]topSlot, topSlots), make([]topDetail, topSlots)
	}
	for i := range keys {
		k := &keys[i]
		k.hash = topHash(k.db, k.key)
		t.seen += t.slots[k.hash%topSlots].count
	}
}

// add adds the calls for which k stands, at the instant now. is has the details of the sampled
// call, or is nil. A key longer than topKey bytes counts only in the totals.
func (t *topTable) add(k *notedKey, now limit.Instant, is *Detail) {
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

// halve halves all counts, so that earlier calls weigh less than recent ones.
func (t *topTable) halve() {
	t.total /= 2
	for i := range t.slots {
		t.slots[i].count /= 2
	}
}

// reset sets all counts to 0.
func (t *topTable) reset() {
	t.total, t.recent = 0, recentCount{}
	for i := range t.slots {
		t.slots[i].count = 0
	}
}

// topName is a key and the index of its database.
type topName struct {
	db  int
	key string
}

// topCount has the number of calls on a key: count is halved once a minute, and recent covers the
// last recentPeriod.
type topCount struct {
	count  int64
	recent float64
}

// collect adds the counts of the keys in the table to sum, and returns the number of calls on all
// keys.
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

// notedKey is a sample for a table: a key and the calls for which it stands. key refers to the input
// of its batch, which is kept until the batch ends, or is a copy.
type notedKey struct {
	key    []byte
	db     int
	is     int    // index of the details in Recorder.details; -1 if there are none
	weight int64  // number of calls for which the sample stands
	like   int64  // number of calls in the group for which the details stand
	hash   uint64 // hash of key and db
}
