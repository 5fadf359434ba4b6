package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// sequence is a list of calls on one key under the same clauses.
type sequence struct {
	Name    string   `json:"name"`
	Clauses []string `json:"clauses"`
	Steps   []step   `json:"steps"`
}

// step is one call. At is an instant in milliseconds since 1970. Reply and Each are the answer of the server.
type step struct {
	At     int64      `json:"at"`
	Cost   int64      `json:"cost"`
	Member string     `json:"member,omitempty"`
	Reply  [5]int64   `json:"reply"`
	Each   [][5]int64 `json:"each"`
}

// noon is the instant at which all sequences begin: 12:00 on some day, and 250 ms after the beginning of a window of a
// second.
const noon int64 = 1_790_000_000_250

// at returns the steps of calls of one unit at some times after noon, in milliseconds.
func at(millis ...int64) (steps []step) {
	for _, m := range millis {
		steps = append(steps, step{At: noon + m, Cost: 1})
	}
	return steps
}

// costs returns the steps of calls with costs at times after noon: pairs of milliseconds and cost.
func costs(pairs ...[2]int64) (steps []step) {
	for _, p := range pairs {
		steps = append(steps, step{At: noon + p[0], Cost: p[1]})
	}
	return steps
}

// members returns the steps of calls with members, a word of millisecond and member for each.
func members(calls ...string) (steps []step) {
	for _, c := range calls {
		var s step
		if _, err := fmt.Sscanf(c, "%d %s", &s.At, &s.Member); err != nil {
			panic(err)
		}
		s.At, s.Cost = s.At+noon, 1
		steps = append(steps, s)
	}
	return steps
}

// drawn returns n calls with drawn times and costs. The time between two calls is at most gap, and the cost at
// most most; a few calls only look, or give units back.
func drawn(seed uint64, n int, gap, most int64) []step {
	r := rand.New(rand.NewPCG(seed, 33))
	steps, now := make([]step, n), noon
	for i := range steps {
		now += r.Int64N(gap + 1)
		if r.IntN(4) == 0 {
			now += gap
		}
		cost := 1 + r.Int64N(most)
		switch r.IntN(12) {
		case 0:
			cost = 0
		case 1:
			cost = -cost
		}
		steps[i] = step{At: now, Cost: cost}
	}
	return steps
}

// drawnMembers returns n calls of drawn members.
func drawnMembers(seed uint64, n int, gap int64) []step {
	steps := drawn(seed, n, gap, 1)
	r := rand.New(rand.NewPCG(seed, 34))
	for i := range steps {
		steps[i].Cost, steps[i].Member = 1, fmt.Sprint("m", r.IntN(6))
	}
	return steps
}

func decisions() (file, error) {
	f := file{name: "decide.json", about: "Decisions of the server, for the limiter in the process and for test doubles."}
	for _, s := range []sequence{
		{Name: "a bucket that is empty after two calls", Clauses: []string{"TB 2 1 60"}, Steps: at(0, 1000, 2000, 2100, 10_000, 60_000, 61_000, 300_000)},
		{Name: "a bucket with costs", Clauses: []string{"TB 10 1 1"}, Steps: costs([2]int64{0, 3}, [2]int64{0, 8}, [2]int64{1000, 8}, [2]int64{1000, 11}, [2]int64{1250, 1}, [2]int64{1250, 0}, [2]int64{1250, -4}, [2]int64{1250, 4}, [2]int64{1250, -100}, [2]int64{1250, 10})},
		{Name: "a bucket whose unit takes no whole number of milliseconds", Clauses: []string{"TB 5 7 1"}, Steps: at(0, 0, 0, 0, 0, 0, 100, 142, 143, 200, 286, 1000)},
		{Name: "a bucket of capacity 0", Clauses: []string{"TB 0 1 1"}, Steps: costs([2]int64{0, 1}, [2]int64{0, 0})},
		{Name: "a window of units", Clauses: []string{"SW 3 1 FIXED"}, Steps: at(0, 10, 20, 30, 749, 750, 751, 1749, 1750, 5000)},
		{Name: "a window with costs", Clauses: []string{"SW 10 60 FIXED"}, Steps: costs([2]int64{0, 4}, [2]int64{5, 7}, [2]int64{5, 6}, [2]int64{10, 11}, [2]int64{10, 0}, [2]int64{10, -3}, [2]int64{10, 3}, [2]int64{10, -50}, [2]int64{10, 10})},
		{Name: "a window with a limit of 0", Clauses: []string{"SW 0 60 FIXED"}, Steps: costs([2]int64{0, 1}, [2]int64{0, 0})},
		{Name: "the default mode of a window is COUNTER", Clauses: []string{"SW 10 1"}, Steps: costs([2]int64{-250, 6}, [2]int64{250, 5}, [2]int64{750, 2}, [2]int64{950, 5}, [2]int64{1250, 5})},
		{Name: "a sliding window", Clauses: []string{"SW 3 1 COUNTER"}, Steps: at(0, 10, 20, 30, 749, 750, 1000, 1100, 1749, 1750, 2000, 9000)},
		{Name: "a sliding window with costs", Clauses: []string{"SW 100 60 COUNTER"}, Steps: costs([2]int64{0, 60}, [2]int64{10, 41}, [2]int64{10, 40}, [2]int64{50_000, 0}, [2]int64{60_000, 20}, [2]int64{70_000, 20}, [2]int64{70_000, -30}, [2]int64{70_000, 101}, [2]int64{180_000, 100})},
		{Name: "a burst and a rate", Clauses: []string{"CL 2 1 1"}, Steps: at(0, 0, 0, 0, 500, 1000, 1001, 5000)},
		{Name: "no burst", Clauses: []string{"CL 0 1 1"}, Steps: costs([2]int64{0, 1}, [2]int64{999, 1}, [2]int64{1000, 1}, [2]int64{1000, 2}, [2]int64{1000, -1}, [2]int64{1000, 1})},
		{Name: "a max burst of -1 is a limit of 0", Clauses: []string{"CL -1 1 1"}, Steps: costs([2]int64{0, 1}, [2]int64{0, 0})},
		{Name: "places with leases", Clauses: []string{"CC 2 30"}, Steps: members("0 a", "1000 b", "2000 c", "2500 a", "31000 c", "31001 d", "32500 d", "90000 e")},
		{Name: "a limit of 0 places", Clauses: []string{"CC 0 30"}, Steps: members("0 a")},
		{Name: "two clauses: all or nothing", Clauses: []string{"TB 3 1 1", "SW 2 60 FIXED"}, Steps: at(0, 0, 0, 1000, 50_000)},
		{Name: "two clauses with costs", Clauses: []string{"TB 10 5 1", "SW 12 86400 FIXED"}, Steps: costs([2]int64{0, 10}, [2]int64{0, 1}, [2]int64{200, 2}, [2]int64{400, 2}, [2]int64{1000, 11}, [2]int64{1000, -5}, [2]int64{1000, 13})},
		{Name: "places beside a bucket", Clauses: []string{"CC 1 30", "TB 3 1 60"}, Steps: members("0 a", "10000 b", "10000 a", "41000 b", "41500 b", "80000 b")},
		{Name: "drawn calls of a bucket", Clauses: []string{"TB 20 7 3"}, Steps: drawn(1, 120, 1200, 6)},
		{Name: "drawn calls of a fast bucket", Clauses: []string{"TB 200 1000 1"}, Steps: drawn(2, 120, 30, 60)},
		{Name: "drawn calls of a window", Clauses: []string{"SW 25 10 FIXED"}, Steps: drawn(3, 120, 1200, 6)},
		{Name: "drawn calls of a sliding window", Clauses: []string{"SW 25 10 COUNTER"}, Steps: drawn(4, 120, 1200, 6)},
		{Name: "drawn calls of a short sliding window", Clauses: []string{"SW 9 1s COUNTER"}, Steps: drawn(5, 120, 250, 3)},
		{Name: "drawn calls of CL", Clauses: []string{"CL 14 3 2s"}, Steps: drawn(6, 120, 1200, 6)},
		{Name: "drawn members", Clauses: []string{"CC 3 5"}, Steps: drawnMembers(7, 120, 1500)},
		{Name: "drawn calls of three clauses", Clauses: []string{"TB 12 4 1", "SW 30 10 COUNTER", "SW 90 1m FIXED"}, Steps: drawn(8, 120, 1500, 5)},
	} {
		if err := s.decide(); err != nil {
			return f, fmt.Errorf("%s: %w", s.Name, err)
		}
		f.vectors = append(f.vectors, s)
	}
	return f, nil
}

// decide makes a server answer the calls, and stores the answers.
func (s *sequence) decide() error {
	session, err := inproc.Feed(limit.Instant(s.Steps[0].At * int64(time.Millisecond)))
	if err != nil {
		return err
	}
	defer session.Close()
	set := append([]string{"RL.POLICY", "SET", "v", "LIMITS"}, strings.Fields(strings.Join(s.Clauses, " "))...)
	if v, err := session.Value(set...); err != nil || v.Type == '-' {
		return refusal(s.Name, v.Text, err)
	}
	config := rules.Config{Policy: "v"}
	for i := range s.Steps {
		call := &s.Steps[i]
		session.Server().Clock.Set(limit.Instant(call.At * int64(time.Millisecond)))
		words, err := config.Words(rules.Request{Key: "k", Cost: call.Cost, Member: call.Member})
		if err != nil {
			return err
		}
		var answer use.Answer
		reply, err := session.Do(words...)
		if err != nil {
			return err
		}
		if _, err := answer.Read(reply); err != nil {
			return fmt.Errorf("step %d: %q: %w", i, reply, err)
		}
		call.Reply = five(answer.Binding)
		for _, c := range answer.Clauses {
			call.Each = append(call.Each, five(c))
		}
	}
	return nil
}

// clauses parses texts of clauses with times in seconds.
func clauses(texts []string) ([]rules.Clause, error) {
	list := make([]rules.Clause, len(texts))
	for i, text := range texts {
		c, err := rules.ParseClause(text, time.Second)
		if err != nil {
			return nil, err
		}
		list[i] = c
	}
	return list, nil
}

func five(d use.Decision) [5]int64 {
	return [5]int64{d.Refused, d.Limit, d.Remaining, d.RetryMillis, d.ResetMillis}
}
