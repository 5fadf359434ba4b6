package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Plan is everything that a seed determines before the history starts.
type Plan struct {
	Seed     uint64
	Replicas int
	Clients  int
	Rounds   int
	// Kept says that servers have a log, and Always that each reply waits for an fsync.
	Kept, Always bool
	// Acks is the number of replicas that must acknowledge a change before its reply.
	Acks int
	// Needs says that the primary refuses changes without a replica.
	Needs bool
	// Sentinel says that a model of Sentinel promotes replicas.
	Sentinel bool
	// Deaths says that servers die.
	Deaths bool
	// Options are the options of all servers.
	Options []string
	// Focus is the most frequent kind of fault.
	Focus Focus
	// Think is the longest pause between two calls of a client.
	Think time.Duration
}

// Focus is a kind of fault.
type Focus int

// The kinds of faults on which a history may focus.
const (
	Anything Focus = iota
	Handovers
	Deaths
	Promotions
)

// Draw returns the plan of a seed.
func Draw(seed uint64) Plan {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := Plan{
		Seed: seed, Replicas: rng.IntN(4), Clients: 2 + rng.IntN(31), Rounds: 2 + rng.IntN(3),
		Kept: rng.IntN(3) > 0, Deaths: rng.IntN(4) > 0,
		Think: time.Duration(20+rng.IntN(200)) * time.Millisecond,
	}
	if p.Replicas > 0 {
		p.Focus = Focus(rng.IntN(4))
	}
	fsync := []string{"everysec", "no"}[rng.IntN(2)]
	if p.Always = p.Kept && rng.IntN(2) == 0; p.Always {
		fsync = "always"
	}
	if p.Replicas > 0 && rng.IntN(2) == 0 {
		p.Sentinel, p.Acks = true, p.Replicas
		if p.Replicas == 3 { // three voters and four servers only allow this many
			p.Replicas, p.Acks = 2, 2
		}
	} else if p.Replicas > 0 && rng.IntN(2) == 0 {
		p.Acks = []int{1, p.Replicas}[rng.IntN(2)]
	}
	if !p.Kept && !p.Sentinel && p.Replicas > 0 && rng.IntN(3) > 0 {
		p.Acks, p.Deaths, p.Focus = p.Replicas, true, Deaths // acknowledged writes are only on the replicas
	}
	yes := map[bool]string{true: "yes", false: "no"}
	p.Options = []string{
		"--appendonly", yes[p.Kept], "--appendfsync", fsync, "--save", "",
		"--repl-ack-replies", strconv.Itoa(p.Acks), "--repl-timeout", strconv.Itoa(3 + rng.IntN(5)),
		"--repl-ping-replica-period", "1",
		"--id-ttl", "86400", // no call is forgotten
		"--repl-backlog-size", []string{"16384", "1048576", "16777216"}[rng.IntN(3)],
		"--repl-ack-timeout", strconv.Itoa(200 + rng.IntN(800)),
	}
	if p.Needs = p.Needs || p.Replicas > 0 && rng.IntN(4) == 0; p.Needs {
		p.Options = append(p.Options, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "3")
	}
	if rng.IntN(4) == 0 {
		p.Options = append(p.Options, "--auto-aof-rewrite-min-size", "65536")
	}
	return p
}

// String returns a summary of the plan.
func (p Plan) String() string {
	return fmt.Sprintf("seed %d: replicas %d, clients %d, rounds %d, sentinel %t, deaths %t, focus %d, %v",
		p.Seed, p.Replicas, p.Clients, p.Rounds, p.Sentinel, p.Deaths, p.Focus, p.Options)
}

// refuses reports whether every acknowledged change is on every replica, and replicas refuse a
// primary that restarts empty, whatever calls it has had by then: it acknowledges no change without
// them.
func (p Plan) refuses() bool { return !p.Kept && p.Acks == p.Replicas && p.Replicas > 0 }

// looks reports whether the reply of a denied call has to match the state after earlier calls: a
// denied call waits for no replica, so it may have seen writes that are lost after a death or a
// promotion.
func (p Plan) looks() bool {
	return !p.Sentinel && (p.Focus == Handovers || !p.Deaths && p.Replicas == 0)
}
