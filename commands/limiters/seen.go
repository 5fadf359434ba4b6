package limiters

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// watch implements [command.Seen] from the tables of all workers.
type watch struct {
	s     *command.Server
	slot  command.Slot
	mixed *mixed
}

// TakeGroups implements [command.Seen]. It also clears what the workers have recorded about groups.
func (w watch) TakeGroups() []stats.SeenGroup {
	sum := make(map[string]*stats.SeenGroup)
	w.s.Host.EachWorker(func(worker *command.Worker) {
		s := w.slot.OfWorker(worker).(*scratch)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.groups.take(func(g *seenGroup) {
			s := sum[g.name]
			if s == nil {
				s = &stats.SeenGroup{Name: g.name}
				sum[g.name] = s
			}
			s.Denied.Merge(&g.denied)
			s.Refused += g.refused
			for i := range g.kinds {
				if k := &g.kinds[i]; k.count > 0 {
					addCalls(s, k)
				}
			}
		})
	})
	groups := make([]stats.SeenGroup, 0, len(sum))
	for _, s := range sum {
		groups = append(groups, *s)
	}
	slices.SortFunc(groups, func(a, b stats.SeenGroup) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// addCalls adds the calls of the kind k to s.Calls, the sums over the workers. Kinds with the same
// command and limit are added up.
func addCalls(s *stats.SeenGroup, k *seenKind) {
	is := k.call()
	for i := range s.Calls {
		if o := &s.Calls[i]; o.Command == is.Command && o.Args[:o.Limit] == is.Args[:is.Limit] {
			o.Count += k.count
			return
		}
	}
	s.Calls = append(s.Calls, stats.SeenCalls{SeenCall: is, Count: k.count})
}

// Denied implements [command.Seen].
func (w watch) Denied(now limit.Instant) stats.SeenKeys { return w.keys((*scratch).deniedKeys, now) }

// Called implements [command.Seen].
func (w watch) Called(now limit.Instant) stats.SeenKeys { return w.keys((*scratch).calledKeys, now) }

// Groups implements [command.Seen].
func (w watch) Groups() []stats.GroupCount { return w.slot.OfServer(w.s).(*stats.Groups).Snapshot() }

// LackedMemory implements [command.Seen].
func (w watch) LackedMemory(worker *command.Worker, key []byte) {
	s := w.slot.OfWorker(worker).(*scratch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups.of(key, w.s.Options.Groups.Delimiter).refused++
}

// keys returns the keys of one table, summed over all workers, in descending order of their rates.
func (w watch) keys(table func(*scratch) *topTable, now limit.Instant) (seen stats.SeenKeys) {
	sum, total := make(map[topName]*stats.SeenKey), 0.0
	since := w.s.Host.EachWorker(func(worker *command.Worker) {
		s := w.slot.OfWorker(worker).(*scratch)
		s.mu.Lock()
		defer s.mu.Unlock()
		total += table(s).look(now, sum)
	})
	seconds := over(now.Sub(since)).Seconds()
	seen.PerSecond = total / seconds
	for _, k := range sum {
		k.PerSecond /= seconds
		seen.Keys = append(seen.Keys, *k)
	}
	slices.SortFunc(seen.Keys, func(a, b stats.SeenKey) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(b.Count, a.Count), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	})
	return seen
}

// look adds the keys of the table to sum, and returns the number of recent events of all keys.
// PerSecond of the keys in sum has the number of recent events; the caller divides it by the time.
func (t *topTable) look(now limit.Instant, sum map[topName]*stats.SeenKey) float64 {
	for i := range t.slots {
		s := &t.slots[i]
		if s.count <= 0 {
			continue
		}
		more := &t.more[i]
		name := topName{s.db, string(more.key)}
		k := sum[name]
		if k == nil {
			k = &stats.SeenKey{DB: s.db, Key: name.key, First: s.first}
			sum[name] = k
		}
		k.Count, k.PerSecond = k.Count+s.count, k.PerSecond+s.recent.at(now)
		k.First = min(k.First, s.first)
		if more.known {
			k.Clients = append(k.Clients, more.callers.list()...)
		}
		if s.last >= k.Last {
			k.Last = s.last
			if more.known {
				k.SeenCall = more.newest.call()
			}
		}
	}
	return t.recent.at(now)
}
