package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/stats"
)

// figures returns the metrics of groups of keys, and of keys that two limits share.
func figures() []figure.Figure {
	return []figure.Figure{
		{
			Name: "group_decisions_total", Kind: figure.Counter, Labels: []string{"group", "result"},
			Values: "group of keys (metrics-group-by), `(none)` for keys without the delimiter, `other` for all groups beyond metrics-max-groups; `allowed`, `denied`",
			Help:   "Decisions by group of keys. A call of several clauses counts once in each group of its keys. Long pipelines are sampled.",
			Read: eachGroup(func(g *stats.GroupCount, emit figure.Emit) {
				emit(float64(g.Calls-g.Denied), g.Label, "allowed")
				emit(float64(g.Denied), g.Label, "denied")
			}),
		},
		{
			Name: "group_near_limit_total", Kind: figure.Counter, Labels: []string{"group"}, Values: "as above",
			Help: "Allowed decisions that left little of the limit (metrics-near-limit), sampled likewise.",
			Read: eachGroup(func(g *stats.GroupCount, emit figure.Emit) { emit(float64(g.Near), g.Label) }),
		},
		{
			Name: "two_limits_calls_total", Kind: figure.Counter, Info: figure.Field("Ratelimit", "two-limits-calls"),
			Help: "Calls of limiters that found the usage of another limit under their key: a changed limit, or two limits that share a key, which RL.TOP CALLS WITHDETAILS shows.",
			Read: figure.One(func(v *figure.View) int64 { return serviceOf(v).Keys.MixedCalls() }),
		},
		{
			Name: "id_repeats_total", Kind: figure.Counter, Info: figure.Field("Ratelimit", "id_repeats"),
			Help: "Calls with ID that repeated a charged call, and so charged nothing. RL.TOP REPEATS shows their keys.",
			Read: figure.One(func(v *figure.View) int64 { return serviceOf(v).Keys.IDs().Repeats }),
		},
		{
			Name: "id_forgotten_total", Kind: figure.Counter, Info: figure.Field("Ratelimit", "id_forgotten"),
			Help: "Calls with ID that were forgotten before id-ttl, because their key had id-max-per-key later ones.",
			Read: figure.One(func(v *figure.View) int64 { return serviceOf(v).Keys.IDs().Forgotten }),
		},
		{
			Info: figure.Field("Ratelimit", "id_shortest_memory_ms"),
			Help: "The least time for which such a call was remembered, in milliseconds; 0 if there was none.",
			Read: figure.One(func(v *figure.View) int64 { return serviceOf(v).Keys.IDs().Shortest.Milliseconds() }),
		},
		reservations("made", "Reservations that calls with RESERVE have made, without repetitions.", func(n *hotkeys.Reservations) int64 { return n.Made }),
		reservations("committed", "Reservations that RL.COMMIT settled before their time had passed.", func(n *hotkeys.Reservations) int64 { return n.Committed }),
		reservations("late", "Reservations that RL.COMMIT settled after their time had passed, with a charge of all units.", func(n *hotkeys.Reservations) int64 { return n.Late }),
		reservations("cancelled", "Reservations that RL.CANCEL ended before their time had passed.", func(n *hotkeys.Reservations) int64 { return n.Cancelled }),
		reservations("expired", "Reservations that ended because their time had passed, counted by the next call of their key.", func(n *hotkeys.Reservations) int64 { return n.Expired }),
		reservations("unknown", "Calls of RL.COMMIT and RL.CANCEL with a reservation that the key does not know.", func(n *hotkeys.Reservations) int64 { return n.Unknown }),
		reservations("refused", "Calls with RESERVE that were denied because their key had reserve-max-per-key live reservations.", func(n *hotkeys.Reservations) int64 { return n.Refused }),
		{
			Name: "policy_notices_total", Kind: figure.Counter, Labels: []string{"result"}, Values: "`delivered`, `left-out`",
			Help: "Events of keys under policies with NOTIFY: those that were published and logged, and calls whose events were left out, because there were too many.",
			Info: figure.Prefixed("Ratelimit", "policy-notices-"),
			Read: func(v *figure.View, emit figure.Emit) {
				if n := serviceOf(v).Notices; n != nil {
					emit(float64(n.Delivered()), "delivered")
					emit(float64(n.LeftOut()), "left-out")
				}
			},
		},
		{
			Name: "retry_after_seconds", Kind: figure.Histogram,
			Help:   "How long denied callers were told to wait, sampled as the groups are. Calls that can never pass are not in it.",
			Spread: spreadRetries,
		},
	}
}

// reservations returns the metric of reservations called name, which read takes from the statistics.
func reservations(name, help string, read func(n *hotkeys.Reservations) int64) figure.Figure {
	return figure.Figure{
		Name: "reservations_" + name + "_total", Kind: figure.Counter, Info: figure.Field("Ratelimit", "reservations_"+name), Help: help,
		Read: figure.One(func(v *figure.View) int64 {
			n := serviceOf(v).Keys.Reservations()
			return read(&n)
		}),
	}
}

// serviceOf returns the limiter service of the server that v shows. The server must have the group
// of the limiters.
func serviceOf(v *figure.View) *ratelimit.Service {
	return command.Find[ratelimit.Service](figure.Of[*command.Server](v))
}

// groupCounts are the counts of all groups of keys. A view keeps them, so that all metrics of one
// scrape are from the same counts.
type groupCounts []stats.GroupCount

// eachGroup returns the Read function of a metric that has a value for each group of keys. The
// function calls read for each group.
func eachGroup(read func(g *stats.GroupCount, emit figure.Emit)) func(*figure.View, figure.Emit) {
	return func(v *figure.View, emit figure.Emit) {
		all := figure.Of[groupCounts](v)
		if all == nil {
			all = serviceOf(v).Keys.Groups().Snapshot()
			figure.Put(v, all)
		}
		for i := range all {
			read(&all[i], emit)
		}
	}
}

func spreadRetries(v *figure.View, emit func(figure.Buckets, ...string)) {
	retries := serviceOf(v).Keys.Groups().Retries()
	b := figure.Buckets{Sum: retries.Sum, Below: make(map[float64]uint64)}
	sum := uint64(0)
	for i, bound := range stats.RetryBounds() {
		sum += uint64(retries.Counts[i])
		b.Below[bound] = sum
	}
	b.Count = float64(sum + uint64(retries.Counts[len(retries.Counts)-1]))
	emit(b)
}
