package main

import (
	"context"
	"fmt"
	"time"
)

// contest compares several contenders under one load.
type contest struct {
	name, text string
	// contenders take turns in this order. If the first is redis_rate, a table compares the others
	// with it.
	contenders []contender
}

type contender struct {
	name string
	run  func(ctx context.Context, b *bench) (figures, error)
}

// figures are the results of one turn.
type figures struct {
	PerSecond   float64       // number of decisions per second
	P99         time.Duration // 99th percentile of the latency of one call
	Engine, Own float64       // processor time per decision in microseconds: of the nodes, and of the servers or programs
	Fairness    float64       // number of decisions of the slowest server divided by the number of the fastest; 0 with one server
	Messages    float64       // number of commands per second that the nodes received; 0 if they were not counted
}

func (f figures) String() string {
	return fmt.Sprintf("%.0f decisions/s, p99 %.2f ms, engine %.2f us, own %.2f us, slowest/fastest %.2f, %.0f messages/s",
		f.PerSecond, millis(f.P99), f.Engine, f.Own, f.Fairness, f.Messages)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// library is the name of the contender with which cellserver is compared.
const library = "redis_rate"

func contests() []contest {
	all := []contest{
		{
			name: "One hot key, 4 servers with 64 callers each",
			text: "Every call is admitted, so every decision changes the key. Each server is a process: for cellserver the part of it behind the commands, for redis_rate a program with the library and one client.",
			contenders: []contender{
				{library, workers(4, task{Kind: library, Callers: 64, Keys: 1})},
				{"cellserver --store", workers(4, task{Kind: "cellserver", Callers: 64, Keys: 1})},
			},
		},
		{
			name: "Single calls, 64 callers",
			text: "One process, 3,000 keys chosen by a Zipf distribution. Every call is admitted and waits for its answer.",
			contenders: []contender{
				{library, workers(1, task{Kind: library, Callers: 64, Keys: 3000})},
				{"cellserver --store", workers(1, task{Kind: "cellserver", Callers: 64, Keys: 3000})},
			},
		},
		{
			name: "A leased key, 8 servers with 64 callers each",
			text: "One hot key under `hot-keys lease`. Messages are the commands that the nodes were sent.",
			contenders: []contender{
				{"hot-lease 10", workers(8, task{Kind: "cellserver", Callers: 64, Keys: 1, Lease: 10 * time.Millisecond})},
				{"hot-lease 100", workers(8, task{Kind: "cellserver", Callers: 64, Keys: 1, Lease: 100 * time.Millisecond})},
			},
		},
	}
	for _, load := range []struct {
		name string
		load
	}{
		{"3,000 keys, admitted", load{keys: 3000, admit: true}},
		{"3,000 keys, denied", load{keys: 3000}},
		{"one key, admitted", load{keys: 1, admit: true}},
	} {
		all = append(all, contest{
			name:       "End to end, " + load.name,
			text:       "redis-benchmark -P 32 -c 24. For redis_rate it sends the library's script to the nodes themselves, which is one hop less.",
			contenders: []contender{{library + "'s script", load.script}, {"cellserver --store", load.server}},
		})
	}
	return all
}

// bench has the resources that all turns share.
type bench struct {
	options
	nodes *nodes
}

// result holds the figures of all turns of a contest.
type result struct {
	contest contest
	turns   [][]figures // the figures of each turn, by contender and round
}

func newResult(c contest) *result {
	return &result{contest: c, turns: make([][]figures, len(c.contenders))}
}

func (r *result) add(contender int, f figures) { r.turns[contender] = append(r.turns[contender], f) }
