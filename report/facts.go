package report

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/limit"
)

// idleSeconds is the time without calls of limiters after which the server counts as idle.
const idleSeconds = 60

// facts collects the facts that the recorder knows. top returns the fraction of the denials of a
// group that belong to its most denied key.
func (r *Recorder) facts(top func(group string) float64) Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Facts{
		At: r.last.Civil, Now: r.now(), Checks: r.checks(), Failing: make(map[string]int64, len(r.failing)),
		Fault: r.last.Fault, FaultSince: r.civil(r.faulty), FullSince: r.civil(r.full), Lacking: Key(r.lacking),
		Script: r.last.Script, Logins: r.last.Logins, Dependencies: r.last.Dependencies, Code: r.code,
		ManualClock: r.last.ManualClock,
	}
	for id, since := range r.failing {
		f.Failing[id] = r.civil(since)
	}
	for _, g := range r.groups {
		f.Groups = append(f.Groups, GroupFacts{
			Group: r.describe(g, top), Before: g.limits.before, Was: g.limits.was, Changed: r.civil(g.limits.changed),
			Rate: g.limits.rate, WasRate: g.limits.wasRate,
		})
		f.Now.KeysDenied += g.keysDenied(second(r.last.At))
	}
	sortGroups(f.Groups)
	recent, over := r.recent(idleSeconds)
	f.Idle = recent.calls == 0 && over >= idleSeconds-1
	return f
}

// now returns the figures of the last ten seconds. The caller holds mu.
func (r *Recorder) now() Now {
	recent, over := r.recent(window)
	_, p50, p99 := r.latency()
	n := Now{
		CallsS: float64(recent.calls) / over, UsualRatio: r.usualRatio(), P50us: float64(micros(p50)), P99us: float64(micros(p99)),
		Clients: r.last.Clients, Memory: r.last.Memory, MaxMemory: r.last.MaxMemory, Keys: r.last.Keys,
	}
	long, _ := r.recent(longWindow)
	n.Repeats, n.Reservations = long.repeats, long.reservations
	if recent.calls > 0 {
		n.DeniedRatio = rounded(float64(recent.denied) / float64(recent.calls))
		n.ErrorRatio = rounded(float64(recent.failed) / float64(recent.calls))
	}
	return n
}

// latest returns the civil time of the newest sample, in Unix milliseconds.
func (r *Recorder) latest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Civil
}

// Civil converts the instant at to civil time, in Unix milliseconds. The instant 0 becomes 0.
func (r *Recorder) Civil(at limit.Instant) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.civil(at)
}

// sortGroups sorts groups by the number of calls, the most first, and groups with equal numbers by
// name.
func sortGroups(groups []GroupFacts) {
	slices.SortFunc(groups, func(a, b GroupFacts) int {
		return cmp.Or(cmp.Compare(b.CallsS, a.CallsS), cmp.Compare(a.Group.Group, b.Group.Group))
	})
}
