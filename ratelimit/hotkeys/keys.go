// Package hotkeys finds the keys of limiters that are denied or called most.
//
// Each goroutine that decides calls has a [Recorder] with tables of bounded size. [Keys] adds up
// the tables of all recorders, for RL.TOP and for reports. It also counts decisions by group of
// keys, and calls that have found the state of another limit under their key.
package hotkeys

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Kind selects which calls on keys are counted.
type Kind uint8

// These are the kinds: denied calls, all calls, and calls that repeat a remembered one (option ID).
const (
	Denied Kind = iota
	Calls
	Repeats

	kinds = iota
)

// EveryDatabase selects the keys of all databases.
const EveryDatabase = -1

// Keys has the statistics of the recorders of one server. Any goroutine may call its methods.
type Keys struct {
	groups    *stats.Groups
	delimiter string
	each      func(f func(r *Recorder)) (since limit.Instant)
	warn      func(calls int64)
	mixed     mixed
	ids       ids

	reservations reservations
}

// New returns the statistics of keys of a server. o says to which group a key belongs. each calls f
// for each recorder, and returns the instant since which the recorders have recorded. If two limits
// share a key, warn is called, at most once a minute, with the number of calls since its last call
// that have found the state of another limit. Every goroutine with a recorder may call warn.
func New(o stats.GroupOptions, each func(f func(r *Recorder)) (since limit.Instant), warn func(calls int64)) *Keys {
	return &Keys{groups: stats.NewGroups(o), delimiter: o.Delimiter, each: each, warn: warn}
}

// NewRecorder returns a recorder for one goroutine. The function each that was passed to [New] must
// include it.
func (k *Keys) NewRecorder() *Recorder {
	return &Recorder{keys: k, counts: k.groups.NewLane(), denials: stats.NewSampler()}
}

// Groups returns the counters of decisions by group of keys.
func (k *Keys) Groups() *stats.Groups { return k.groups }

// TakeGroups returns the statistics of groups of keys since its last call, sorted by name, and
// clears them.
func (k *Keys) TakeGroups() []stats.SeenGroup {
	sum := make(map[string]*stats.SeenGroup)
	k.each(func(r *Recorder) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.groups.take(func(g *seenGroup) {
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

// addCalls adds the count of k to the element of s.Calls with the same command and limit. It
// appends such an element if there is none.
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

// Seen returns the most frequent keys of all databases by kind, as of the instant now, in
// descending order of their rates. Each has the details that are known of its calls.
func (k *Keys) Seen(kind Kind, now limit.Instant) (seen stats.SeenKeys) {
	sum, total := make(map[topName]*stats.SeenKey), 0.0
	since := k.each(func(r *Recorder) {
		r.mu.Lock()
		defer r.mu.Unlock()
		total += r.tables[kind].look(now, sum)
	})
	seconds := over(now.Sub(since)).Seconds()
	seen.PerSecond = total / seconds
	for _, key := range sum {
		key.PerSecond /= seconds
		seen.Keys = append(seen.Keys, *key)
	}
	slices.SortFunc(seen.Keys, func(a, b stats.SeenKey) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(b.Count, a.Count), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	})
	return seen
}

// look adds the keys of the table to sum, and returns the number of recent calls on all keys. For
// each key it adds the number of recent calls to PerSecond, which the caller divides by the time.
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

// Key is a key in the result of [Keys.Top].
type Key struct {
	DB   int
	Name string
	// Count is the approximate number of calls on the key. It is halved once a minute.
	Count int64
	// PerSecond is the number of calls per second over the last ten seconds.
	PerSecond float64
	// Share is the fraction of all counted calls of the kind, on the keys of all databases, that are on
	// this key: from 0 to 1.
	Share float64

	// Servers is the number of servers whose calls are in Count, and Missing the maximum number of calls on other
	// servers, which have left the key out of their summaries, or -1 if it is unknown. Both are set by [TopOf] alone.
	Servers int
	Missing int64
}

// Top returns the n most frequent keys by kind in the database db, which may be [EveryDatabase], in
// descending order of their counts, as of the instant now. It returns only keys for which shown
// returns true; a nil shown admits all keys.
func (k *Keys) Top(kind Kind, now limit.Instant, db, n int, shown func(key string) bool) []Key {
	keys, total := k.count(kind, now)
	return first(keys, total, db, n, shown)
}

// count returns all keys by kind, without their shares and in any order, and the number of calls on all keys.
func (k *Keys) count(kind Kind, now limit.Instant) (keys []Key, total int64) {
	sum := make(map[topName]topCount)
	since := k.each(func(r *Recorder) {
		r.mu.Lock()
		defer r.mu.Unlock()
		total += r.tables[kind].collect(now, sum)
	})
	seconds := over(now.Sub(since)).Seconds()
	keys = make([]Key, 0, len(sum))
	for name, n := range sum {
		keys = append(keys, Key{DB: name.db, Name: name.key, Count: n.count, PerSecond: n.recent / seconds})
	}
	return keys, total
}

// first selects the result of [Keys.Top] from keys. It sets the shares of the keys of total, and changes their order.
func first(keys []Key, total int64, db, n int, shown func(key string) bool) []Key {
	keys = slices.DeleteFunc(keys, func(k Key) bool {
		return db != EveryDatabase && k.DB != db || shown != nil && !shown(k.Name)
	})
	slices.SortFunc(keys, byCount)
	keys = keys[:min(n, len(keys))]
	for i := range keys {
		keys[i].Share = float64(keys[i].Count) / float64(total)
	}
	return keys
}

// byCount compares keys: the order of RL.TOP.
func byCount(a, b Key) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Name, b.Name))
}

// TwoLimits reports whether two limits share key in the database db, as far as the calls until now
// show.
func (k *Keys) TwoLimits(db int, key string, now limit.Instant) bool {
	return k.mixed.has(db, key, now)
}

// MixedCalls returns the number of calls that have found the state of another limit under their key.
func (k *Keys) MixedCalls() int64 { return k.mixed.calls.Load() }

// ResetMixed forgets which keys are shared by two limits, and sets the number of MixedCalls to 0.
func (k *Keys) ResetMixed() { k.mixed.reset() }
