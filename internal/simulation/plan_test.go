package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Plan is what a seed draws before anything runs.
type Plan struct {
	Seed     uint64
	Replicas int
	Clients  int
	Rounds   int
	// Kept says that servers have a log, and Always that each reply waits for the disk.
	Kept, Always bool
	// Acks is the number of replicas that must have a change before it is answered.
	Acks int
	// Needs says that the primary takes no changes without a replica.
	Needs bool
	// Sentinel says that a model of Sentinel promotes replicas.
	Sentinel bool
	// Deaths says that servers die.
	Deaths bool
	// Options are those of all servers.
	Options []string
	// Focus is the kind of faults that come most.
	Focus Focus
	// Think is the longest time between two calls of a client.
	Think time.Duration
}

// Focus is a kind of faults.
type Focus int

// What most faults of a history are.
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
		if p.Replicas == 3 { // three voters and four servers say no more than three
			p.Replicas, p.Acks = 2, 2
		}
	} else if p.Replicas > 0 && rng.IntN(2) == 0 {
		p.Acks = []int{1, p.Replicas}[rng.IntN(2)]
	}
	if !p.Kept && !p.Sentinel && p.Replicas > 0 && rng.IntN(3) > 0 {
		p.Acks, p.Deaths, p.Focus = p.Replicas, true, Deaths // replicas are all that is left of what was answered
	}
	yes := map[bool]string{true: "yes", false: "no"}
	p.Options = []string{
		"--appendonly", yes[p.Kept], "--appendfsync", fsync, "--save", "",
		"--repl-ack-replies", strconv.Itoa(p.Acks), "--repl-timeout", strconv.Itoa(3 + rng.IntN(5)),
		"--repl-ping-replica-period", "1",
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

// String says what was drawn.
func (p Plan) String() string {
	return fmt.Sprintf("seed %d: replicas %d, clients %d, rounds %d, sentinel %t, deaths %t, focus %d, %v",
		p.Seed, p.Replicas, p.Clients, p.Rounds, p.Sentinel, p.Deaths, p.Focus, p.Options)
}

// refuses reports whether all that was answered is on every replica, and these refuse a primary
// that comes back empty, whatever it is called for meanwhile: it answers no change without them.
func (p Plan) refuses() bool { return !p.Kept && p.Acks == p.Replicas && p.Replicas > 0 }

// looks reports whether a call that is denied has to be told the state that the calls before it
// have left: it waits for nothing, so after a death or a promotion it may have seen what is lost.
func (p Plan) looks() bool {
	return !p.Sentinel && (p.Focus == Handovers || !p.Deaths && p.Replicas == 0)
}
