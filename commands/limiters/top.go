package limiters

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

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

// note remembers the key of a decision for RL.TOP until the batch ends.
func note(c *command.Call, db int, key []byte, refused int64) {
	s := command.Scratch[scratch](c)
	if refused != 0 {
		if s.refusals++; s.refusals <= deniedExact {
			s.noted = append(s.noted, noted(c, db, key))
		} else if s.refusals%deniedSample == 0 {
			s.notedMany = append(s.notedMany, noted(c, db, key))
		}
	}
	if s.untilCall--; s.untilCall < 0 {
		s.untilCall = callsSample - 1
		s.called = append(s.called, noted(c, db, key))
	}
}

// noted names a key, which is copied if it does not last.
func noted(c *command.Call, db int, key []byte) notedKey {
	if c.Volatile {
		key = bytes.Clone(key)
	}
	return notedKey{db, key}
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
		BatchEnd: func(w *command.Worker) {
			s := of(w)
			s.flush(w.Store.Now())
			s.multi.trim()
		},
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

// decided notes the outcome of a limiter command for its key.
func decided(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	note(c, a.DB, a.Key, a.Decision.Refused)
}
