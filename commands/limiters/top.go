package limiters

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/stats"
)

// topEntry is a key in the reply of RL.TOP.
type topEntry struct {
	topName
	count     int64
	perSecond float64 // calls per second over the last recentPeriod
	share     float64 // the fraction of the calls on all keys, from 0 to 1
}

// everyDatabase is the value of topKeys' parameter db that selects all databases.
const everyDatabase = -1

// topKeys returns the n most frequent keys in the database db, summed over the tables of all
// workers, in descending order. db may be everyDatabase. table selects the table of a worker.
// topKeys returns only keys that shown accepts; a nil shown accepts all. A share is relative to the
// calls on all databases.
func topKeys(c *command.Call, table func(*scratch) *topTable, db, n int, shown func(key string) bool) []topEntry {
	sum, total, now := make(map[topName]topCount), int64(0), c.Store.Now()
	since := c.Server.Host.EachWorker(func(w *command.Worker) {
		s := command.ScratchOf[scratch](c, w)
		s.mu.Lock()
		defer s.mu.Unlock()
		total += table(s).collect(now, sum)
	})
	counted := now.Sub(since)
	all := make([]topEntry, 0, len(sum))
	for name, n := range sum {
		if db != everyDatabase && name.db != db || shown != nil && !shown(name.key) {
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
	// callsSample is the sampling rate of the table of calls: one call in 16, at random.
	callsSample = 16
	// detailSample is the sampling rate of details in long batches: one sampled call in 3.
	detailSample = 3
	// maxNoted is the number of sampled calls after which a batch moves them into the tables before
	// it ends.
	maxNoted = 256
)

// callsRate is the rate of callsSample in the form that stats.Sampler takes.
var callsRate = stats.OneIn(callsSample)

// note counts d, the decision on a under key, in the group of key, and samples key for RL.TOP: some
// refusals, and about one call in callsSample. The samples are moved into the tables when the batch
// ends.
func (s *scratch) note(c *command.Call, a *decide.Ask, key []byte, d *limit.Decision) {
	if s.counts.Due() {
		s.counts.Add(key, outcome(d))
	}
	s.noteKey(c, a, key, d)
}

// noteClauses is note for a call of several clauses. Each of its keys may be sampled, but the call
// counts only once in each group of its keys.
func noteClauses(c *command.Call, a *decide.Ask) {
	s := command.Scratch[scratch](c)
	if s.counts.Due() {
		s.countClauses(c, a, s.counts.Weight())
	}
	for i := range a.Details {
		s.noteKey(c, a, a.Clauses[i].Key, &a.Details[i])
	}
}

// countClauses counts the call that a decides, with the weight calls, once in each group of its
// keys. All keys of a policy are in one group.
func (s *scratch) countClauses(c *command.Call, a *decide.Ask, calls int64) {
	if namesPolicy(c) {
		s.counts.Count(a.Clauses[0].Key, outcome(worst(a, 0, nil)), calls)
		return
	}
	groupBy := c.Server.Options.Groups.Delimiter
	if len(a.Details) > policy.MaxClauses {
		s.countManyClauses(a, groupBy, calls)
		return
	}
	for i := range a.Details {
		name, fixed := stats.GroupOf(a.Clauses[i].Key, groupBy)
		same := func(j int) bool {
			other, otherFixed := stats.GroupOf(a.Clauses[j].Key, groupBy)
			return fixed == otherFixed && string(name) == string(other)
		}
		first := true
		for j := 0; j < i && first; j++ {
			first = !same(j)
		}
		if first {
			s.counts.Count(a.Clauses[i].Key, outcome(worst(a, i, same)), calls)
		}
	}
}

// countManyClauses is countClauses for a call of many clauses. groupBy is the delimiter of groups.
// It uses a map, because comparing each clause with all others would take seconds for the largest
// possible call.
func (s *scratch) countManyClauses(a *decide.Ask, groupBy string, calls int64) {
	type group struct {
		name, fixed string
	}
	tells := make(map[group]int) // the index of the clause that counts for each group
	for i := range a.Details {
		name, fixed := stats.GroupOf(a.Clauses[i].Key, groupBy)
		is := group{string(name), fixed}
		if at, known := tells[is]; !known || worse(&a.Details[i], &a.Details[at]) {
			tells[is] = i
		}
	}
	for _, i := range tells {
		s.counts.Count(a.Clauses[i].Key, outcome(&a.Details[i]), calls)
	}
}

// worse reports whether the decision o counts for a group in place of d: o is refused and d is not,
// or neither is refused and o leaves a smaller share of its limit.
func worse(o, d *limit.Decision) bool {
	left := func(d *limit.Decision) float64 { return float64(d.Remaining) / float64(max(1, d.Limit)) }
	return d.Refused == 0 && (o.Refused != 0 || left(o) < left(d))
}

// worst returns the decision that counts for a group: a refused one if there is any, and otherwise
// the one that leaves the smallest share of its limit. It considers clause i of a and those later
// clauses for which in is true; a nil in is true for all of them.
func worst(a *decide.Ask, i int, in func(j int) bool) *limit.Decision {
	d := &a.Details[i]
	for j := i + 1; j < len(a.Details) && d.Refused == 0; j++ {
		if o := &a.Details[j]; worse(o, d) && (in == nil || in(j)) {
			d = o
		}
	}
	return d
}

// noteKey is note without the count in the group of key. It also counts a call that has found the
// state of another limit.
func (s *scratch) noteKey(c *command.Call, a *decide.Ask, key []byte, d *limit.Decision) {
	if a.Foreign != 0 {
		s.noteMixed(c, a, key)
	}
	if d.Refused != 0 && s.denials.Due() {
		s.noteDenied(c, a, key, d)
	}
	if s.untilCall--; s.untilCall < 0 {
		s.noteCalled(c, a, key, d)
	}
}

// noteDenied adds a sampled refusal to s.noted. It keeps the details of the first refusal of a
// batch, and of some of those with a weight above 1.
func (s *scratch) noteDenied(c *command.Call, a *decide.Ask, key []byte, d *limit.Decision) {
	k := noted(c, a.DB, key, s.denials.Weight())
	if len(s.noted) == 0 || k.weight > 1 && s.detailDue() {
		k.is = s.detailed(c, a.Family, d)
	}
	s.noted = append(s.noted, k)
}

// noteCalled adds a sampled call with the weight callsSample to s.called, and draws how many calls
// to skip until the next sample. The first call of a worker has the weight 1, so that RL.TOP shows
// something from the first call on.
func (s *scratch) noteCalled(c *command.Call, a *decide.Ask, key []byte, d *limit.Decision) {
	weight := int64(callsSample)
	if !s.calledOnce {
		s.calledOnce, weight = true, 1
	}
	s.untilCall = s.denials.Skip(callsRate)
	k := noted(c, a.DB, key, weight)
	switch {
	case s.counts.Exact():
		k.is, k.like = s.detailed(c, a.Family, d), weight
	case s.detailDue():
		k.is, k.like = s.detailed(c, a.Family, d), weight*detailSample
	}
	s.called = append(s.called, k)
	if len(s.called) >= maxNoted { // a script may make any number of calls
		s.flush(c.Worker)
	}
}

// detailDue reports whether the details of the present sample are to be kept, and advances the
// countdown. Only some details are kept, because they are the most expensive part of a sample.
func (s *scratch) detailDue() bool {
	s.untilDetail--
	if s.untilDetail > 0 {
		return false
	}
	s.untilDetail = detailSample
	return true
}

// detailed adds the details of the running command to s.details and returns their index.
func (s *scratch) detailed(c *command.Call, f decide.Family, d *limit.Decision) int {
	n := len(s.details)
	if n < cap(s.details) {
		s.details = s.details[:n+1]
	} else {
		s.details = append(s.details, detail{})
	}
	s.details[n].set(c, f, int64(d.RetryAfter))
	return n
}

// noted returns a notedKey without details for key. It copies key if its memory may be reused
// before the batch ends.
func noted(c *command.Call, db int, key []byte, weight int64) notedKey {
	if c.Volatile {
		key = bytes.Clone(key)
	}
	return notedKey{key: key, db: db, is: -1, weight: weight}
}

// flush moves the samples of the batch into the tables of the worker w, at the present instant.
func (s *scratch) flush(w *command.Worker) {
	if len(s.noted) == 0 && len(s.called) == 0 {
		return
	}
	now, groupBy := w.Store.Now(), w.Server.Options.Groups.Delimiter
	s.mu.Lock()
	s.denied.locate(s.noted)
	s.calls.locate(s.called)
	for i := range s.noted {
		k := &s.noted[i]
		s.groups.of(k.key, groupBy).denied.Add(k.hash)
		s.denied.add(k, now, s.detailOf(k))
	}
	for i := range s.called {
		k := &s.called[i]
		is := s.detailOf(k)
		if is != nil {
			s.groups.of(k.key, groupBy).called(is, k.like)
		}
		s.calls.add(k, now, is)
	}
	s.mu.Unlock()
	clear(s.noted) // the keys refer to the input of the batch, which is reused
	clear(s.called)
	s.noted, s.called, s.details = s.noted[:0], s.called[:0], s.details[:0]
}

// detailOf returns the details of the sample k, or nil if they were not kept.
func (s *scratch) detailOf(k *notedKey) *detail {
	if k.is < 0 {
		return nil
	}
	return &s.details[k.is]
}

// topHooks returns the hooks that maintain the tables of RL.TOP and the counts of groups. slot is
// that of the group.
func topHooks(slot command.Slot) command.Hooks {
	of := func(w *command.Worker) *scratch { return slot.OfWorker(w).(*scratch) }
	return command.Hooks{
		BatchEnd: func(w *command.Worker) {
			s := of(w)
			s.flush(w)
			s.denials.EndBatch()
			s.counts.Publish()
			s.multi.trim()
			s.use.trim(&s.multi.multiRoom)
		},
		Limited: func(c *command.Call, a *decide.Ask) { of(c.Worker).note(c, a, a.Key, &a.Decision) },
		Decided: func(w *command.Worker, db int, d *command.Decided, now limit.Instant) {
			s := of(w)
			s.counts.Count(d.Key, outcome(&d.Decision), 1)
			s.counts.Publish()
			if d.Counter != nil {
				d.Counter.Answered(d.Decision.Refused != 0)
			}
			if d.Decision.Refused == 0 {
				return
			}
			s.mu.Lock()
			s.denied.add(&notedKey{key: d.Key, db: db, weight: 1, hash: topHash(db, d.Key)}, now, nil)
			s.mu.Unlock()
		},
		Decay: func(w *command.Worker) {
			s := of(w)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.denied.halve()
			s.calls.halve()
		},
		ResetStats: func(w *command.Worker) {
			s := of(w)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.denied.reset()
			s.calls.reset()
			s.counts.Reset()
			s.mixed.reset()
		},
	}
}

// outcome returns d in the form that the counts of groups take.
func outcome(d *limit.Decision) stats.Outcome {
	return stats.Outcome{Refused: d.Refused, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter}
}

// decided counts and samples the decision on a for the running command of a limiter, under the key
// of a.
func decided(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	command.Scratch[scratch](c).note(c, a, a.Key, &a.Decision)
}
