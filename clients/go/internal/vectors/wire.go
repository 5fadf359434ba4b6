package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// exchange is a call and the words that it sends, or a reply and its meaning.
type exchange struct {
	Name   string   `json:"name"`
	Policy string   `json:"policy,omitempty"`
	Limits []string `json:"limits,omitempty"`
	Class  string   `json:"class,omitempty"`
	Keep   string   `json:"keep,omitempty"`

	Do     string `json:"do"`
	Key    string `json:"key,omitempty"`
	Cost   int64  `json:"cost"`
	Mode   string `json:"mode,omitempty"`
	Member string `json:"member,omitempty"`
	ID     string `json:"id,omitempty"`
	TTL    int64  `json:"ttl,omitempty"`

	Words []string `json:"words,omitempty"`
	Error bool     `json:"error,omitempty"`

	Reply  any      `json:"reply,omitempty"`
	Result *meaning `json:"result,omitempty"`
}

// meaning is the meaning of a reply. Times are in milliseconds; null means that there is none.
type meaning struct {
	Allowed    bool   `json:"allowed"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter *int64 `json:"retryAfter"`
	ResetAfter *int64 `json:"resetAfter"`
	Never      bool   `json:"never"`
	Blocked    bool   `json:"blocked"`
	Clauses    int    `json:"clauses"`
}

func wire() (file, error) {
	f := file{name: "wire.json", about: "The words of each call, and the meaning of each reply."}
	one, two := []string{"TB 200 100 1"}, []string{"TB 10 5 1", "SW 1000 1h FIXED"}
	calls := []string{"SW 60 1m CALLS", "TB 100000 1000 1"}
	for _, c := range []exchange{
		{Name: "a policy", Policy: "api", Do: "call", Key: "acme", Cost: 1},
		{Name: "a cost", Policy: "api", Do: "call", Key: "acme", Cost: 25},
		{Name: "no units", Policy: "api", Do: "call", Key: "acme", Cost: 0},
		{Name: "units that are given back", Policy: "api", Do: "call", Key: "acme", Cost: -3},
		{Name: "a key with spaces and other letters", Policy: "api", Do: "call", Key: "Ann Müller\r\n", Cost: 1},
		{Name: "PEEK", Policy: "api", Do: "call", Key: "acme", Cost: 1, Mode: "PEEK"},
		{Name: "FORCE", Policy: "api", Do: "call", Key: "acme", Cost: 1, Mode: "FORCE"},
		{Name: "PARTIAL", Policy: "api", Do: "call", Key: "acme", Cost: 5, Mode: "PARTIAL"},
		{Name: "a class", Policy: "classes", Class: "batch", Do: "call", Key: "acme", Cost: 1},
		{Name: "KEEP", Policy: "api", Keep: "20%", Do: "call", Key: "acme", Cost: 1},
		{Name: "a member", Policy: "jobs", Do: "call", Key: "acme", Cost: 1, Member: "w1"},
		{Name: "an ID", Policy: "api", Do: "call", Key: "acme", Cost: 1, ID: "4f2c"},
		{Name: "a reservation", Policy: "api", Do: "call", Key: "acme", Cost: 2, ID: "r1", TTL: 30_000},
		{Name: "all options", Policy: "jobs", Keep: "1", Do: "call", Key: "acme", Cost: 1, Mode: "PEEK", Member: "w1", ID: "r2"},
		{Name: "renewing it", Policy: "api", Do: "renew", Key: "acme", ID: "r1", TTL: 30_000},
		{Name: "settling it", Policy: "api", Do: "commit", Key: "acme", Cost: 1, ID: "r1"},
		{Name: "settling with nothing used", Policy: "api", Do: "commit", Key: "acme", Cost: 0, ID: "r1"},
		{Name: "giving it up", Policy: "api", Do: "cancel", Key: "acme", ID: "r1"},
		{Name: "the check at start", Policy: "api", Do: "start"},
		{Name: "the check at start with a class", Policy: "classes", Class: "batch", Do: "start"},
		{Name: "the check at start with a member", Policy: "jobs", Do: "start", Member: "w1"},
		{Name: "one bucket", Policy: "own", Limits: one, Do: "call", Key: "acme", Cost: 3},
		{Name: "one bucket with options", Policy: "own", Limits: []string{"tb 10 5 1500ms interval init 3"}, Do: "call", Key: "acme", Cost: 1, ID: "4f2c"},
		{Name: "one bucket, PEEK", Policy: "own", Limits: one, Do: "call", Key: "acme", Cost: 1, Mode: "PEEK"},
		{Name: "one bucket, FORCE", Policy: "own", Limits: one, Do: "call", Key: "acme", Cost: 1, Mode: "FORCE"},
		{Name: "one bucket, a reservation", Policy: "own", Limits: one, Do: "call", Key: "res", Cost: 1, ID: "r3", TTL: 5000},
		{Name: "one bucket, settled", Policy: "own", Limits: one, Do: "commit", Key: "res", Cost: 2, ID: "r3"},
		{Name: "one bucket has no check at start", Policy: "own", Limits: one, Do: "start"},
		{Name: "one window", Policy: "own", Limits: []string{"SW 100 1m"}, Do: "call", Key: "w", Cost: 1},
		{Name: "one window with its mode", Policy: "own", Limits: []string{"SW 100 60 FIXED"}, Do: "call", Key: "w2", Cost: 2, Mode: "PARTIAL"},
		{Name: "a window of the calendar", Policy: "own", Limits: []string{"SW 100 month ZONE Europe/Berlin FROM 15"}, Do: "call", Key: "w3", Cost: 2},
		{Name: "an instant of ANCHOR", Policy: "own", Limits: []string{"SW 100 60 FIXED ANCHOR 1790000000"}, Do: "call", Key: "w4", Cost: 2},
		{Name: "CL has MS only in RL.MULTI", Policy: "own", Limits: []string{"CL 15 30 60"}, Do: "call", Key: "c", Cost: 2},
		{Name: "places", Policy: "own", Limits: []string{"CC 5 30"}, Do: "call", Key: "p", Cost: 1, Member: "w1"},
		{Name: "places and no units", Policy: "own", Limits: []string{"CC 5 30"}, Do: "call", Key: "p", Cost: 0, Member: "w2"},
		{Name: "several limits", Policy: "own", Limits: two, Do: "call", Key: "s", Cost: 2},
		{Name: "several limits, PEEK", Policy: "own", Limits: two, Do: "call", Key: "s", Cost: 2, Mode: "PEEK"},
		{Name: "several limits, a reservation", Policy: "own", Limits: two, Do: "call", Key: "s", Cost: 2, ID: "r4", TTL: 5000},
		{Name: "several limits, renewed", Policy: "own", Limits: two, Do: "renew", Key: "s", ID: "r4", TTL: 5000},
		{Name: "several limits, given up", Policy: "own", Limits: two, Do: "cancel", Key: "s", ID: "r4"},
		{Name: "CALLS alone", Policy: "own", Limits: calls[:1], Do: "call", Key: "calls", Cost: 25},
		{Name: "CALLS beside units", Policy: "own", Limits: calls, Do: "call", Key: "calls", Cost: 800},
		{Name: "CALLS and no units", Policy: "own", Limits: calls, Do: "call", Key: "calls", Cost: 0},
		{Name: "CALLS and units that are given back", Policy: "own", Limits: calls, Do: "call", Key: "calls", Cost: -5},
		{Name: "CALLS, a reservation", Policy: "own", Limits: calls, Do: "call", Key: "held", Cost: 800, ID: "r5", TTL: 5000},
		{Name: "CALLS, settled", Policy: "own", Limits: calls, Do: "commit", Key: "held", Cost: 500, ID: "r5"},
		{Name: "several limits, FORCE", Policy: "own", Limits: two, Do: "call", Key: "s", Cost: 2, Mode: "FORCE"},
		{Name: "inline limits have no class", Policy: "own", Limits: one, Class: "batch", Do: "call", Key: "s", Cost: 2},
		{Name: "a key that ends like a state", Policy: "own", Limits: two, Do: "call", Key: "s#2", Cost: 1},
	} {
		limits, err := clauses(c.Limits)
		if err != nil {
			return f, err
		}
		config := rules.Config{Policy: c.Policy, Limits: limits, Class: c.Class, Keep: c.Keep}
		r := rules.Request{Key: c.Key, Cost: c.Cost, Mode: rules.Mode(c.Mode), Member: c.Member, ID: c.ID, TTL: time.Duration(c.TTL) * time.Millisecond}
		switch c.Do {
		case "call":
			c.Words, err = config.Words(r)
			c.Error = err != nil
		case "start":
			c.Words = config.Start(c.Member)
		case "commit":
			c.Words = config.Settle(r, c.Cost)
		case "cancel":
			c.Words = config.Settle(r, -1)
		case "renew":
			c.Words = config.Renew(r)
		}
		f.vectors = append(f.vectors, c)
	}
	if err := accepted(f.vectors); err != nil {
		return f, err
	}
	five := func(n ...int64) []any { return list(n) }
	for _, c := range []exchange{
		{Name: "allowed", Cost: 1, Reply: five(0, 200, 199, -1, 10)},
		{Name: "denied", Cost: 1, Reply: five(1, 200, 0, 7, 2000)},
		{Name: "above the limit: never", Cost: 3, Reply: five(1, 2, 2, -1, 0)},
		{Name: "a limit of 0: never", Cost: 1, Reply: five(1, 0, 0, -1, 0)},
		{Name: "a block without an end", Cost: 1, Reply: five(1, 2, 0, -1, -1)},
		{Name: "a block with an end", Cost: 1, Reply: five(1, 2, 0, 60000, 60000)},
		{Name: "a part was granted", Cost: 5, Reply: five(2, 3, 0, 500, 1000)},
		{Name: "no limit", Cost: 1000, Reply: five(0, 4294967295, 4294967295, -1, 0)},
		{Name: "a clause alone", Cost: 1, Reply: []any{five(0, 2, 1, -1, 60), []any{five(0, 2, 1, -1, 60)}}},
		{Name: "several clauses", Cost: 1, Reply: []any{five(1, 2, 0, 60, 60), []any{five(0, 3, 1, -1, 2), five(1, 2, 0, 60, 60)}}},
		{Name: "one of several clauses can never pass", Cost: 7, Reply: []any{five(1, 10, 0, -1, 90), []any{five(1, 10, 0, 50, 90), five(1, 5, 5, -1, 0)}}},
		{Name: "four numbers", Cost: 1, Reply: five(0, 2, 1, -1)},
		{Name: "six numbers", Cost: 1, Reply: five(0, 2, 1, -1, 0, 0)},
		{Name: "nothing", Cost: 1, Reply: []any{}},
		{Name: "a word", Cost: 1, Reply: "OK"},
		{Name: "a word in place of a number", Cost: 1, Reply: []any{int64(0), "2", int64(1), int64(-1), int64(0)}},
		{Name: "no clause", Cost: 1, Reply: []any{five(0, 2, 1, -1, 60), []any{}}},
		{Name: "a clause with four numbers", Cost: 1, Reply: []any{five(0, 2, 1, -1, 60), []any{five(0, 2, 1, -1)}}},
	} {
		c.Do = "read"
		if d, err := rules.Read(c.Reply); err != nil {
			c.Error = true
		} else {
			c.Result = &meaning{
				Allowed: d.Allowed(), Limit: d.Limit, Remaining: d.Remaining, RetryAfter: some(d.RetryAfter), ResetAfter: some(d.ResetAfter),
				Never: d.Never(c.Cost), Blocked: d.Blocked(c.Cost), Clauses: len(d.Clauses),
			}
		}
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}

// some returns a time in milliseconds, or nil if there is none.
func some(d time.Duration) *int64 {
	if d == rules.None {
		return nil
	}
	n := d.Milliseconds()
	return &n
}

// accepted makes a server answer the words. It returns an error if one of the answers is an error.
func accepted(vectors []any) error {
	session, err := inproc.Feed(limit.Instant(noon * int64(time.Millisecond)))
	if err != nil {
		return err
	}
	defer session.Close()
	for _, policy := range []string{"api LIMITS TB 200 100 1", "jobs LIMITS CC 5 30", "classes CLASS batch KEEP 20% LIMITS TB 200 100 1"} {
		if v, err := session.Value(append([]string{"RL.POLICY", "SET"}, strings.Fields(policy)...)...); err != nil || v.Type == '-' {
			return refusal(policy, v.Text, err)
		}
	}
	for _, v := range vectors {
		c := v.(exchange)
		if len(c.Words) == 0 {
			continue
		}
		if v, err := session.Value(c.Words...); err != nil || v.Type == '-' {
			return refusal(c.Name, v.Text, err)
		}
	}
	return nil
}

// refusal returns the error of a command that the server has refused.
func refusal(what, text string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: the server answers %q", what, text)
}
