package commands

import (
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
// lanes, the most frequent first. Shares are of what occurred in all databases.
func (e *Engine) topKeys(table func(*Lane) *topTable, db, n int, now limit.Instant) []topEntry {
	sum, total := make(map[topName]topCount), int64(0)
	e.lanesMu.Lock()
	for _, l := range e.lanes {
		total += table(l).collect(now, sum)
	}
	counted := now.Sub(e.topSince)
	e.lanesMu.Unlock()
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
	if refused {
		if laneOf(c.Worker).refusals++; laneOf(c.Worker).refusals <= deniedExact {
			laneOf(c.Worker).noted = append(laneOf(c.Worker).noted, notedKey{c.Client.Selected(), key})
		} else if laneOf(c.Worker).refusals%deniedSample == 0 {
			laneOf(c.Worker).notedMany = append(laneOf(c.Worker).notedMany, notedKey{c.Client.Selected(), key})
		}
	}
	if laneOf(c.Worker).untilCall--; laneOf(c.Worker).untilCall < 0 {
		laneOf(c.Worker).untilCall = callsSample - 1
		laneOf(c.Worker).called = append(laneOf(c.Worker).called, notedKey{c.Client.Selected(), key})
	}
}

// flushTop moves what a batch has noted into the tables.
func (l *Lane) flushTop() {
	l.refusals = 0
	flushInto(&l.Worker, &l.denied, &l.noted, 1)
	flushInto(&l.Worker, &l.denied, &l.notedMany, deniedSample)
	flushInto(&l.Worker, &l.calls, &l.called, callsSample)
}

func flushInto(l *command.Worker, t *topTable, keys *[]notedKey, weight int64) {
	if len(*keys) == 0 {
		return
	}
	now := l.Store.Now()
	t.mu.Lock()
	for _, k := range *keys {
		t.add(k.db, k.key, weight, now)
	}
	t.mu.Unlock()
	clear(*keys) // the input is about to go
	*keys = (*keys)[:0]
}

// resetTop forgets what RL.TOP shows; lanesMu is held.
func (e *Engine) resetTop() {
	e.topSince = e.Opts.Now()
	for _, l := range e.lanes {
		l.denied.reset()
		l.calls.reset()
	}
}
