package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/cellserver/cellserver/stats"
)

// Share has the figures that one server contributes to the reports about all servers of a store. [Reporter.AppendShare]
// encodes a share, without the parts that exceed the bounds below. Times are relative to the instant at which the share
// was made, so that clocks need not agree.
type Share struct {
	kind           string // the kind of the server's verdict
	sick           bool
	now            shareNow
	histories      [2]shareHistory // the histories with the steps of shareSteps
	groups         []shareGroup    // the groups, the most called first
	rest           shareGroup      // the sum of the groups that are left out
	denied, called shareKeys
}

// shareNow has the figures of [Now]. Rates are per second.
type shareNow struct {
	calls, denied, failed float64
	p99                   int64 // percentile of the durations of calls, in microseconds
	clients, keysDenied   int64
	repeats               int64
	reservations          []Count
}

// shareHistory has the newest steps of the history.
type shareHistory struct {
	// since is the time since the beginning of the newest step.
	since time.Duration
	steps []step // the steps, the oldest first
}

// shareGroup has the figures of a group of keys. Rates are per second.
type shareGroup struct {
	name                string
	calls, denied, near float64
	keysDenied          int64
	command, args       string // the limit of most calls: the command, and the arguments that give the limit
	spark               [sparkSteps]groupTime
}

// shareKeys has the keys with most calls of one kind, in descending order of their rates.
type shareKeys struct {
	keys      []shareKey
	perSecond float64 // the rate of all keys together
	omitted   float64 // the maximum of the rates of the keys that are left out
}

// shareKey describes a key. Caller.ID is 0 in a share that was parsed.
type shareKey struct {
	keyName
	perSecond     float64
	command, args string // the command and the arguments of the latest call
	retry         int64  // time until the key may be called again, in milliseconds
	since         int64  // time since the key was first seen, in milliseconds
	callers       []Caller
}

// These are the bounds of the bytes of a share: 32 KiB in all, whatever the numbers of groups and keys are.
const (
	MaxShare = 32 << 10
	// maxShareSteps is the maximum number of steps of each history.
	maxShareSteps = 360
	// maxShareGroups is the maximum number of groups, and groupBytes the maximum number of bytes of
	// all groups together.
	maxShareGroups, groupBytes = 20, 10 << 10
	// maxShareKeys is the maximum number of keys of one kind, and keyBytes the maximum number of bytes of all of them
	// together.
	maxShareKeys, keyBytes = 50, 4 << 10
	// maxShareCallers is the maximum number of callers of a key. Their names are cut to maxCallerText bytes.
	maxShareCallers, maxCallerText = 2, 48
	// maxCounts is the maximum number of kinds of events, and maxWord the maximum length of a word, such as the name of
	// a command.
	maxCounts, maxWord = 16, 32
	// maxSeenKey is the maximum length of a key.
	maxSeenKey = 1 << 10
	// maxGroupName is the maximum length of the name of a group.
	maxGroupName = 64
)

// shareSteps has the lengths of the steps of the histories of a share, in seconds, and the longest span for each.
var shareSteps = [...]struct{ span, size int64 }{{3600, 10}, {MaxSpan, MaxSpan / maxShareSteps}}

// share returns the complete share of this server. The caller applies the bounds of its size: see
// [Share.bounded].
func (r *Reporter) share() Share {
	f, _ := r.facts(nil)
	if named := r.named.Load(); named != nil {
		f.Named = *named
	}
	v := Diagnose(&f)
	s := Share{kind: v.Kind, sick: v.Sick}
	r.rec.share(&s)
	s.now.clients, s.now.p99 = f.Now.Clients, int64(f.Now.P99us)
	s.now.keysDenied = f.Now.KeysDenied
	s.denied, s.called = r.shareKeys(r.src.Denied()), r.shareKeys(r.src.Called())
	return s
}

// shareKeys returns the statistics of keys for the share of this server.
func (r *Reporter) shareKeys(seen stats.SeenKeys) shareKeys {
	all := shareKeys{perSecond: seen.PerSecond, keys: make([]shareKey, len(seen.Keys))}
	at := r.rec.latest()
	for i := range seen.Keys {
		k := &seen.Keys[i]
		all.keys[i] = shareKey{
			keyName: keyName{k.DB, k.Key}, perSecond: k.PerSecond, command: k.Command, args: k.Args,
			retry: k.RetryAfter.Milliseconds(), since: max(0, at-r.rec.Civil(k.First)), callers: r.callers(k.Clients),
		}
	}
	return all
}

// share sets the fields of s that the recorder knows.
func (r *Recorder) share(s *Share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recent, over := r.recent(window)
	s.now.calls, s.now.denied, s.now.failed = float64(recent.calls)/over, float64(recent.denied)/over, float64(recent.failed)/over
	long, _ := r.recent(longWindow)
	s.now.repeats, s.now.reservations = long.repeats, long.reservations
	for i := range s.histories {
		s.histories[i] = r.shareHistory(shareSteps[i].size)
	}
	for _, g := range r.groups {
		calls, denied, near := g.rates()
		s.groups = append(s.groups, shareGroup{
			name: g.name, calls: calls, denied: denied, near: near, keysDenied: g.keysDenied(second(r.last.At)),
			command: g.limits.command, args: g.limits.args, spark: r.sparkTimes(g),
		})
	}
	slices.SortFunc(s.groups, func(a, b shareGroup) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
}

// shareHistory returns the newest steps of the given length in seconds. The caller holds mu.
func (r *Recorder) shareHistory(size int64) (h shareHistory) {
	if r.last.At == 0 {
		return h
	}
	now := second(r.last.At)
	newest := now / size
	h.since = time.Duration(now-newest*size) * time.Second
	for n := max(newest-maxShareSteps+1, second(r.started)/size); n <= newest; n++ {
		sum, any := r.sum(n*size, size)
		if !any && len(h.steps) == 0 {
			continue
		}
		h.steps = append(h.steps, step{
			allowed: capped(sum.allowed), denied: capped(sum.denied), failed: capped(sum.failed), p50: sum.p50, p99: sum.p99,
		})
	}
	return h
}

// capped returns n or, if that is lower, the maximum number of a step.
func capped(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }

// bounded returns s without the parts that exceed the bounds: it keeps the groups called most, with the sum of the
// others in rest, and the keys with the highest rates.
func (s *Share) bounded() Share {
	is := *s
	size := 0
	for i := range is.groups {
		if size += len(is.groups[i].pack(nil)); i >= maxShareGroups || size > groupBytes {
			for j := range is.groups[i:] {
				is.rest.add(&is.groups[i+j])
			}
			is.groups = is.groups[:i]
			break
		}
	}
	is.denied, is.called = is.denied.bounded(), is.called.bounded()
	is.now.reservations = is.now.reservations[:min(len(is.now.reservations), maxCounts)]
	return is
}

// bounded returns s without the keys that exceed the bounds of a share.
func (s *shareKeys) bounded() shareKeys {
	is := *s
	size := 0
	for i := range is.keys {
		if size += len(is.keys[i].pack(nil)); i >= maxShareKeys || size > keyBytes {
			is.omitted = is.keys[i].perSecond
			is.keys = is.keys[:i]
			break
		}
	}
	return is
}

// add adds the figures of o to the figures of g. The limit is that of the group with more calls.
func (g *shareGroup) add(o *shareGroup) {
	if o.calls > g.calls || g.command == "" {
		g.command, g.args = o.command, o.args
	}
	g.calls, g.denied, g.near = g.calls+o.calls, g.denied+o.denied, g.near+o.near
	g.keysDenied = max(g.keysDenied, o.keysDenied)
	for i := range g.spark {
		g.spark[i].allowed = capped(int64(g.spark[i].allowed) + int64(o.spark[i].allowed))
		g.spark[i].denied = capped(int64(g.spark[i].denied) + int64(o.spark[i].denied))
	}
}
