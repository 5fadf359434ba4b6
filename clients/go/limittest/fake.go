// Package limittest has a server in the process for tests, with a clock that the test moves.
//
// A [Fake] is the client of real limiters, so that everything but the server is what runs in production: the cache of
// denials, the breaker and the choice of what happens when the server is away.
package limittest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/local"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/clients/go/limit"
)

// Fake is a server for tests. Its methods may be called concurrently.
type Fake struct {
	mu       sync.Mutex // mu guards the fields below
	now      time.Time
	away     bool
	policies map[string]*policy
	calls    []Call
}

type policy struct {
	texts   []any
	clauses []rules.Clause
	keys    map[string]*account
}

// of returns the account of a key.
func (p *policy) of(key string) *account {
	a, ok := p.keys[key]
	if !ok {
		a = &account{key: key, table: local.New(p.clauses), held: map[string]*hold{}}
		p.keys[key] = a
	}
	return a
}

// Call is a call that the fake has received.
type Call struct {
	Policy, Key string
	Cost        int64
}

// New returns a fake without policies whose clock stands at start.
func New(start time.Time) *Fake { return &Fake{now: start, policies: map[string]*policy{}} }

// Policy sets a policy to clauses such as "TB 200 100 1", and forgets what was used of it. It returns the error of a
// text that is not a clause.
func (f *Fake) Policy(name string, limits ...string) error {
	p := &policy{keys: map[string]*account{}}
	for _, text := range limits {
		c, err := rules.ParseClause(text, time.Second)
		if err != nil {
			return err
		}
		p.clauses, p.texts = append(p.clauses, c), append(p.texts, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policies[name] = p
	return nil
}

// Options returns o with the fake as its server, and its clock.
func (f *Fake) Options(o limit.Options) limit.Options {
	o.URL, o.Client, o.Now = "", f, f.Now
	return o
}

// Now returns the time of the fake.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock of the fake forward by d.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// GoAway makes all calls time out, at once, until [Fake.ComeBack].
func (f *Fake) GoAway() { f.set(true) }

// ComeBack makes the fake answer again.
func (f *Fake) ComeBack() { f.set(false) }

func (f *Fake) set(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

// Calls returns the calls of RL.USE so far, those without an answer included. A [Call] of a reservation is the one that makes it.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// unknown is the error reply to a command that the fake does not have.
const unknown limit.ReplyError = "ERR unknown command of limittest"

// Do answers RL.USE, also with RESERVE, TB.ACQUIRE and SW.ALLOW for Limits of one clause, and RL.COMMIT, RL.CANCEL, RL.RENEW, RL.RESET,
// DEL and RL.POLICY GET. It implements limit.Client.
func (f *Fake) Do(_ context.Context, words []string) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const least = 2
	if len(words) < least {
		return nil, unknown
	}
	switch words[0] {
	case "RL.USE":
		return f.use(words)
	case "TB.ACQUIRE", "SW.ALLOW":
		return f.inline(words)
	case "RL.RESET", "DEL":
		return f.reset(words[len(words)-1])
	case "RL.COMMIT", "RL.CANCEL", "RL.RENEW":
		return f.settle(words)
	case "RL.POLICY":
		name := words[len(words)-1]
		p, ok := f.policies[name]
		switch {
		case f.away:
			return nil, context.DeadlineExceeded
		case !ok:
			return nil, noPolicy(name)
		}
		return []any{"limits", p.texts, "ms", int64(0)}, nil
	}
	return nil, unknown
}

// errCost is the error for a call whose cost is not a number. No limiter makes such a call.
var errCost = errors.New("limittest: a cost that is not a number")

func (f *Fake) use(words []string) (any, error) {
	const least = 4
	if len(words) < least {
		return nil, unknown
	}
	cost, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return nil, errCost
	}
	f.calls = append(f.calls, Call{words[1], words[2], cost})
	p, ok := f.policies[words[1]]
	switch {
	case f.away:
		return nil, context.DeadlineExceeded
	case !ok:
		return nil, noPolicy(words[1])
	}
	a := p.of(words[2])
	a.lapse(f.now)
	c := charge{at: f.now, cost: cost, member: option(words, "MEMBER", 1), peek: slices.Contains(words[least:], string(limit.Peek))}
	var d rules.Decision
	if id := option(words, "RESERVE", 1); id == "" {
		d = a.decide(c)
	} else if d, err = p.reserve(a, c, id, option(words, "RESERVE", 2)); err != nil {
		return nil, err
	}
	each := make([]any, len(d.Clauses))
	for i := range d.Clauses {
		each[i] = five(&d.Clauses[i])
	}
	return []any{five(&d.Numbers), each}, nil
}

// option returns the n-th word behind the name of an option, or an empty one.
func option(words []string, name string, n int) string {
	const names = 4 // before them are the policy, the key and the cost
	if at := slices.Index(words[names:], name); at >= 0 && names+at+n < len(words) {
		return words[names+at+n]
	}
	return ""
}

func noPolicy(name string) limit.ReplyError {
	return limit.ReplyError("NOPOLICY No such policy '" + name + "'")
}

// five returns numbers as a reply has them.
func five(n *rules.Numbers) []any {
	millis := func(d time.Duration) int64 {
		if d == rules.None {
			return -1
		}
		return d.Milliseconds()
	}
	return []any{n.Refused, n.Limit, n.Remaining, millis(n.RetryAfter), millis(n.ResetAfter)}
}
