package limiters

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/cellserver/cellserver/commands/command"
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
	// topKey is the longest key that is remembered: the table of a lane then stays
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

// topEntry is a line of RL.TOP.
type topEntry struct {
	topName
	count     int64
	perSecond float64 // over the last recentPeriod
	share     float64 // of the occurrences of all keys, from 0 to 1
}

// everyDatabase stands for all of them where a database may be chosen.
const everyDatabase = -1

// topKeys returns the n most frequent keys of a database, or of every one, over all
// workers, the most frequent first. Shares are of what occurred in all databases.
func topKeys(c *command.Call, table func(*scratch) *topTable, db, n int) []topEntry {
	sum, total, now := make(map[topName]topCount), int64(0), c.Store.Now()
	since := c.Server.Host.EachWorker(func(w *command.Worker) {
		total += table(command.ScratchOf[scratch](c, w)).collect(now, sum)
	})
	counted := now.Sub(since)
	all := make([]topEntry, 0, len(sum))
	for name, n := range sum {
		if db != everyDatabase && name.db != db {
			continue
		}
		all = append(all, topEntry{name, n.count, n.recent / over(counted).Seconds(), float64(n.count) / float64(total)})
	}
	slices.SortFunc(all, func(a, b topEntry) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.db, b.db), cmp.Compare(a.key, b.key))
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

// notedKey is a key on its way to a table of RL.TOP. It lies in the input of its
// batch, which stays until the batch ends.
type notedKey struct {
	db  int
	key []byte
}

// note remembers the key of a decision for RL.TOP until the batch ends.
func note(c *command.Call, key []byte, refused bool) {
	s := command.Scratch[scratch](c)
	if refused {
		if s.refusals++; s.refusals <= deniedExact {
			s.noted = append(s.noted, noted(c, key))
		} else if s.refusals%deniedSample == 0 {
			s.notedMany = append(s.notedMany, noted(c, key))
		}
	}
	if s.untilCall--; s.untilCall < 0 {
		s.untilCall = callsSample - 1
		s.called = append(s.called, noted(c, key))
	}
}

// noted names a key, which is copied if it does not last.
func noted(c *command.Call, key []byte) notedKey {
	if c.Volatile {
		key = bytes.Clone(key)
	}
	return notedKey{c.Client.Selected(), key}
}

// flush moves what a batch has noted into the tables.
func (s *scratch) flush(now limit.Instant) {
	s.refusals = 0
	flushInto(&s.denied, &s.noted, 1, now)
	flushInto(&s.denied, &s.notedMany, deniedSample, now)
	flushInto(&s.calls, &s.called, callsSample, now)
}

func flushInto(t *topTable, keys *[]notedKey, weight int64, now limit.Instant) {
	if len(*keys) == 0 {
		return
	}
	t.mu.Lock()
	for _, k := range *keys {
		t.add(k.db, k.key, weight, now)
	}
	t.mu.Unlock()
	clear(*keys) // the input is about to go
	*keys = (*keys)[:0]
}

// topHooks keep the tables of RL.TOP.
func topHooks(slot command.Slot) command.Hooks {
	of := func(w *command.Worker) *scratch { return slot.OfWorker(w).(*scratch) }
	return command.Hooks{
		BatchEnd: func(w *command.Worker) { of(w).flush(w.Store.Now()) },
		Refused: func(w *command.Worker, db int, key []byte, now limit.Instant) {
			t := &of(w).denied
			t.mu.Lock()
			t.add(db, key, 1, now)
			t.mu.Unlock()
		},
		Decay: func(w *command.Worker) {
			of(w).denied.halve()
			of(w).calls.halve()
		},
		ResetStats: func(w *command.Worker) {
			of(w).denied.reset()
			of(w).calls.reset()
		},
	}
}
