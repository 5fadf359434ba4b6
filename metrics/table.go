package metrics

import (
	"strconv"
	"time"

	"github.com/cellserver/cellserver/commands/stats"
)

// Kind is the type of a metric.
type Kind string

// The types of metrics.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Metric is one line of the table.
type Metric struct {
	Name   string // without the prefix cellserver_
	Kind   Kind
	Labels []string
	Help   string
	Values string // what the labels may be, for the documentation
	// values emits what the metric is; histogram is for those that are one.
	values func(f *Figures, emit func(value float64, labels ...string))
	// histogram emits cumulated counts by upper bound.
	histogram func(f *Figures, emit func(h buckets, labels ...string))
	// bound, if there is one, keeps few values of the only label, and counts the rest together.
	bound *bound
}

// buckets are those of a histogram.
type buckets struct {
	count, sum float64
	below      map[float64]uint64
}

// bound says how many values of a label there may be, beside "other".
type bound struct{ most int }

// Bounds of the values of labels that come from outside.
const (
	maxUsers    = 50
	maxFailures = 16
	// MaxSeries is how many series there are at most with the default of metrics-max-groups,
	// whatever clients do.
	MaxSeries = 500
	// SharedSeries is how many commands, users and codes have a series of their own, taken
	// together: the rest of MaxSeries. The first that are seen have one.
	SharedSeries = 59
)

// durationBounds are upper bounds of the time that commands take. Powers of two of nanoseconds
// are bounds of the buckets in which the server counts, so that these are exact.
var durationBounds = [...]time.Duration{1 << 13, 1 << 15, 1 << 17, 1 << 19, 1 << 20, 1 << 22, 1 << 24, 1 << 27, 1 << 30, 1 << 33}

// one emits a single number.
func one(of func(f *Figures) float64) func(*Figures, func(float64, ...string)) {
	return func(f *Figures, emit func(float64, ...string)) { emit(of(f)) }
}

// counts emits a number for each value of the only label.
func counts(of func(f *Figures) []Count) func(*Figures, func(float64, ...string)) {
	return func(f *Figures, emit func(float64, ...string)) {
		for _, n := range of(f) {
			emit(n.Value, n.Of)
		}
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Table is all metrics, in the order of the documentation.
func Table() []Metric {
	return append(append(gauges(), counters()...), histograms()...)
}

func gauges() []Metric {
	return []Metric{
		{Name: "build_info", Kind: Gauge, Labels: []string{"version", "redis_version", "go_version"}, Help: "Always 1. The labels say which version runs, and which Redis it answers as.", values: func(f *Figures, emit func(float64, ...string)) {
			emit(1, f.Version, f.RedisVersion, f.GoVersion)
		}},
		{Name: "loading", Kind: Gauge, Help: "1 while the server loads its files, and clients get -LOADING.", values: one(func(f *Figures) float64 { return bit(f.Loading) })},
		{Name: "clients", Kind: Gauge, Labels: []string{"state"}, Values: "`blocked` by a command that waits, `subscribed` to something, `normal`", Help: "Open connections of clients, each in one state.", values: counts(func(f *Figures) []Count { return f.Clients })},
		{Name: "loop_busy_ratio", Kind: Gauge, Labels: []string{"loop"}, Values: "number of the event loop", Help: "Share of the last seconds in which an event loop had something to do. At 1 it is the bottleneck.", values: func(f *Figures, emit func(float64, ...string)) {
			for i, share := range f.Loops {
				emit(share, strconv.Itoa(i))
			}
		}},
		{Name: "memory_bytes", Kind: Gauge, Labels: []string{"kind"}, Values: "`used` for all, `dataset` for keys, `clients`, `scripts`, `heap` of Go, `rss` as the system sees it, `max` (maxmemory, 0 without)", Help: "Memory by what it is for. The kinds overlap.", values: counts(func(f *Figures) []Count { return f.Memory })},
		{Name: "keys", Kind: Gauge, Labels: []string{"db"}, Values: "number of a database with keys", Help: "Keys of a database.", values: counts(func(f *Figures) []Count { return f.Keys })},
		{Name: "policies", Kind: Gauge, Labels: []string{"kind"}, Values: "`policies`, `overrides`, `temporary` for boosts, blocks and exemptions", Help: "Limits that live in the server.", values: counts(func(f *Figures) []Count { return f.Policies })},
		{Name: "clock_step_seconds", Kind: Gauge, Help: "How far the wall clock is ahead of the server's own clock, by which it decides.", values: one(func(f *Figures) float64 { return f.ClockStep.Seconds() })},
		{Name: "sync_age_seconds", Kind: Gauge, Help: "For how long changes have been waiting to be safe on disk, 0 if none are or nothing is kept in a log.", values: one(func(f *Figures) float64 { return f.SyncAge.Seconds() })},
		{Name: "persistence_ok", Kind: Gauge, Help: "0 while changes are refused with -MISCONF or the last snapshot has failed.", values: one(func(f *Figures) float64 { return bit(f.PersistenceOK) })},
		{Name: "script_running_seconds", Kind: Gauge, Help: "For how long the script or transaction that keeps all others waiting has been running, 0 if none does.", values: one(func(f *Figures) float64 { return f.ScriptRunning.Seconds() })},
	}
}

func counters() []Metric {
	return []Metric{
		{Name: "connections_total", Kind: Counter, Labels: []string{"result"}, Values: "`accepted`, `refused`", Help: "Connections of clients.", values: counts(func(f *Figures) []Count { return f.Connections })},
		{Name: "commands_total", Kind: Counter, Labels: []string{"command"}, Values: "name of a command that was called, `other`", Help: "Calls of commands.", values: counts(func(f *Figures) []Count { return f.Commands }), bound: &bound{SharedSeries}},
		{Name: "command_failures_total", Kind: Counter, Labels: []string{"code"}, Values: "first word of an error reply, `other`", Help: "Error replies.", values: counts(func(f *Figures) []Count { return f.Failures }), bound: &bound{maxFailures}},
		{Name: "auth_failures_total", Kind: Counter, Help: "Attempts to log in that failed.", values: one(func(f *Figures) float64 { return f.AuthFailures })},
		{Name: "acl_denied_total", Kind: Counter, Labels: []string{"reason"}, Values: "`auth`, `command`, `key`, `channel`", Help: "What the rules of users have refused.", values: counts(func(f *Figures) []Count { return f.ACLDenied })},
		{Name: "net_bytes_total", Kind: Counter, Labels: []string{"direction"}, Values: "`in`, `out`", Help: "Bytes of clients.", values: counts(func(f *Figures) []Count { return f.Net })},
		{Name: "expired_keys_total", Kind: Counter, Help: "Keys that have expired.", values: one(func(f *Figures) float64 { return f.Expired })},
		{Name: "decisions_total", Kind: Counter, Labels: []string{"command", "result"}, Values: "a limiter command that was called; `allowed`, `denied`, `error`", Help: "Calls of limiters by how they ended. RL.MULTI is one call.", values: func(f *Figures, emit func(float64, ...string)) {
			for _, d := range f.Decisions {
				emit(d.Allowed, d.Command, "allowed")
				emit(d.Denied, d.Command, "denied")
				emit(d.Errors, d.Command, "error")
			}
		}},
		{Name: "group_decisions_total", Kind: Counter, Labels: []string{"group", "result"}, Values: "group of keys (metrics-group-by), `(none)` for keys without the delimiter, `other` for all groups beyond metrics-max-groups; `allowed`, `denied`", Help: "Decisions by group of keys, each clause of RL.MULTI for itself. Long pipelines are sampled.", values: func(f *Figures, emit func(float64, ...string)) {
			for _, g := range f.Groups {
				emit(float64(g.Calls-g.Denied), g.Label, "allowed")
				emit(float64(g.Denied), g.Label, "denied")
			}
		}},
		{Name: "group_near_limit_total", Kind: Counter, Labels: []string{"group"}, Values: "as above", Help: "Allowed decisions that left little of the limit (metrics-near-limit), sampled likewise.", values: func(f *Figures, emit func(float64, ...string)) {
			for _, g := range f.Groups {
				emit(float64(g.Near), g.Label)
			}
		}},
		{Name: "policy_calls_total", Kind: Counter, Labels: []string{"result"}, Values: "`blocked`, `exempted`, `exempted-would-be-denied`, `shadow-would-be-denied`, and by policy and candidate `try-both-allow`, `try-only-old-allows`, `try-only-new-allows`, `try-neither-allows`", Help: "Calls of RL.USE that something else than the limits has decided, and those that a candidate has decided, too. RL.POLICY GET has them by policy.", values: counts(func(f *Figures) []Count { return f.PolicyCalls })},
		{Name: "user_commands_total", Kind: Counter, Labels: []string{"user"}, Values: "name of a user of ACL, in quotes if it is odd, `other` for those beyond 50", Help: "Commands that clients of a user have run.", values: counts(func(f *Figures) []Count { return f.Users }), bound: &bound{maxUsers}},
	}
}

func histograms() []Metric {
	return []Metric{
		{Name: "command_duration_seconds", Kind: Histogram, Labels: []string{"class"}, Values: "`fast`, `slow`, `script`", Help: "Time that commands took. Of pipelined fast commands a part is measured.", histogram: func(f *Figures, emit func(buckets, ...string)) {
			for class := range stats.Classes {
				d := &f.Durations[class]
				if d.Calls == 0 {
					continue
				}
				b := buckets{count: float64(d.Calls), sum: d.Sum.Seconds(), below: make(map[float64]uint64)}
				for _, bound := range durationBounds {
					b.below[bound.Seconds()] = uint64(d.Below(bound))
				}
				emit(b, class.String())
			}
		}},
		{Name: "retry_after_seconds", Kind: Histogram, Help: "How long denied callers were told to wait, sampled as the groups are. Calls that can never pass are not in it.", histogram: func(f *Figures, emit func(buckets, ...string)) {
			b := buckets{sum: f.Retries.Sum, below: make(map[float64]uint64)}
			sum := uint64(0)
			for i, bound := range stats.RetryBounds() {
				sum += uint64(f.Retries.Counts[i])
				b.below[bound] = sum
			}
			b.count = float64(sum + uint64(f.Retries.Counts[len(f.Retries.Counts)-1]))
			emit(b)
		}},
	}
}
