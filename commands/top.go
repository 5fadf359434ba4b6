package commands

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
)

// topTable finds the keys that occur most often, in bounded memory: every key has
// one slot by its hash, a hit adds to the slot, and a hit of another key takes one
// away until the slot is free for it. A frequent key thus keeps its slot against
// any number of rare ones (the majority vote of Boyer and Moore, per slot), and its
// count is never above the truth.
type topTable struct {
	mu    sync.Mutex
	slots []topSlot // guarded by mu
}

type topSlot struct {
	hash  uint64
	count int64
	key   []byte
}

const (
	topSlots = 512
	// topKey is the longest key that is remembered: the table of a lane then stays
	// below a megabyte whatever keys a client makes up.
	topKey = 1 << 10
)

var topSeed = maphash.MakeSeed()

// add notes weight occurrences of key.
func (t *topTable) add(key []byte, weight int64) {
	if len(key) > topKey {
		return
	}
	if t.slots == nil {
		t.slots = make([]topSlot, topSlots)
	}
	h := maphash.Bytes(topSeed, key)
	s := &t.slots[h%topSlots]
	switch {
	case s.hash == h && s.count > 0:
		s.count += weight
	case s.count > weight:
		s.count -= weight
	default:
		s.hash, s.count, s.key = h, weight, append(s.key[:0], key...)
	}
}

// halve forgets half of everything, so that the table shows what happens now.
func (t *topTable) halve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		t.slots[i].count /= 2
	}
}

// keyCount is a key and how often it occurred.
type keyCount struct {
	key   string
	count int64
}

// collect adds the table's counts to sum.
func (t *topTable) collect(sum map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		if s := &t.slots[i]; s.count > 0 {
			sum[string(s.key)] += s.count
		}
	}
}

// topKeys returns the n most frequent keys over all lanes, the most frequent first.
func (e *Engine) topKeys(table func(*Lane) *topTable, n int) []keyCount {
	sum := make(map[string]int64)
	e.lanesMu.Lock()
	for _, l := range e.lanes {
		table(l).collect(sum)
	}
	e.lanesMu.Unlock()
	all := make([]keyCount, 0, len(sum))
	for key, count := range sum {
		all = append(all, keyCount{key, count})
	}
	slices.SortFunc(all, func(a, b keyCount) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

const (
	// callsSample is how many calls share one entry in the table of calls.
	callsSample = 16
	// deniedExact is how many refusals of a batch are counted one by one. Of a
	// longer run every deniedSample-th stands for so many.
	deniedExact  = 8
	deniedSample = 8
)

// note remembers the key of a decision for RL.TOP until the batch ends: the keys
// lie in the input, which stays until then.
func (c *Ctx) note(key []byte, refused bool) {
	if refused {
		if c.refusals++; c.refusals <= deniedExact {
			c.noted = append(c.noted, key)
		} else if c.refusals%deniedSample == 0 {
			c.notedMany = append(c.notedMany, key)
		}
	}
	if c.untilCall--; c.untilCall < 0 {
		c.untilCall = callsSample - 1
		c.called = append(c.called, key)
	}
}

// flushTop moves what a batch has noted into the tables.
func (l *Lane) flushTop() {
	l.refusals = 0
	flushInto(&l.denied, &l.noted, 1)
	flushInto(&l.denied, &l.notedMany, deniedSample)
	flushInto(&l.calls, &l.called, callsSample)
}

func flushInto(t *topTable, keys *[][]byte, weight int64) {
	if len(*keys) == 0 {
		return
	}
	t.mu.Lock()
	for _, key := range *keys {
		t.add(key, weight)
	}
	t.mu.Unlock()
	clear(*keys) // the input is about to go
	*keys = (*keys)[:0]
}
