package remote

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// identified has the latest calls with an identity.
type identified struct{ latest []*decide.Ask }

// next returns a with an identity, which may be a reservation, or one of the latest calls again, or a settlement for
// one of them.
func (l *identified) next(rng *rand.Rand, a *decide.Ask) *decide.Ask {
	const kept = 8
	if n := rng.IntN(3 * kept); n < len(l.latest) {
		again := *l.latest[n]
		again.Details = make([]limit.Decision, len(again.Clauses))
		return &again
	}
	if n := rng.IntN(2 * kept); n < len(l.latest) {
		return settlementOf(rng, l.latest[n])
	}
	if a.Family == decide.Admin || a.Family == decide.Cancel {
		return a
	}
	a.ID = idempotency.Call{Token: fmt.Append(nil, rng.IntN(25)), TTL: time.Duration(1+rng.IntN(8)) * time.Second, Max: 3, Seed: 7}
	terms := reservation.Terms{TTL: time.Duration(1+rng.IntN(8)) * time.Second, Max: 2}
	if a.Family == decide.Several {
		if rng.IntN(3) > 0 && reserveEach(a, a.ID.Token, terms.TTL) {
			terms.Linked, terms.Link = true, true
			for i := range a.Clauses[1:] {
				terms.Keys = append(terms.Keys, a.Clauses[1+i].Key)
			}
			a.Reserve = terms
		}
	} else if a.Key = fmt.Appendf(nil, "key:%d:%d", a.Key[4]-'0', rng.IntN(3)); rng.IntN(2) == 0 && reservable(a) {
		a.Reserve = terms
	}
	a.ID.Print = a.Fingerprint()
	own := *a
	own.Own(nil)
	if l.latest = append(l.latest, &own); len(l.latest) > kept {
		l.latest = l.latest[1:]
	}
	return a
}

// reservable reports whether a, about one limiter, can be a reservation.
func reservable(a *decide.Ask) bool {
	switch w, b := &a.Window, &a.Bucket; a.Family {
	case decide.Window:
		return w.Quantity > 0 && w.Charge != slidingwindow.Peek && !w.Penalize
	case decide.Bucket:
		return b.Mode == tokenbucket.Greedy && b.Quantity > 0 && b.Charge != tokenbucket.Peek
	}
	return false
}

// settlementOf returns a settlement for a, or for another call with its key.
func settlementOf(rng *rand.Rand, a *decide.Ask) *decide.Ask {
	s := &decide.Ask{Family: decide.Settle, Key: a.Key, ID: a.ID}
	if a.Family == decide.Several {
		s.Key = a.Clauses[rng.IntN(len(a.Clauses))*rng.IntN(2)].Key
	}
	if rng.IntN(20) == 0 {
		s.ID.Token = []byte("unknown")
	}
	s.Settlement = reservation.Settlement{Op: reservation.Op(1 + rng.IntN(3)), TTL: time.Duration(1+rng.IntN(8)) * time.Second}
	if s.Settlement.Actual = rng.Int64N(12); rng.IntN(9) == 0 {
		s.Settlement.Actuals = []int64{rng.Int64N(9), rng.Int64N(9)}
	}
	s.Window.LogMaxEntries = 1000
	return s
}

// reserveEach makes the clauses of a those of a reservation for the time ttl, if they can be.
func reserveEach(a *decide.Ask, token []byte, ttl time.Duration) bool {
	if a.Clauses[0].Lease != nil {
		return false
	}
	for i := range a.Clauses {
		switch c := &a.Clauses[i]; {
		case c.Peek, c.Quota != nil, c.Bucket != nil && c.Bucket.Mode != tokenbucket.Greedy:
			return false
		}
	}
	for i := range a.Clauses {
		switch c := &a.Clauses[i]; {
		case c.Window != nil:
			c.Window.Quantity = max(1, c.Window.Quantity)
		case c.Bucket != nil:
			c.Bucket.Quantity = max(1, c.Bucket.Quantity)
		default:
			*c.Lease = concurrency.Call{Op: concurrency.Acquire, Member: bytes.Clone(token), Limit: c.Lease.Limit, Lease: ttl}
		}
	}
	return true
}

// identityOf returns what the answer to a says of its identity and of reservations.
func identityOf(a *decide.Ask) string {
	return fmt.Sprint(a.Repeated, a.Forgotten, a.Shortest, a.Lapsed, a.Full, a.Ends)
}

// noteOutcome counts what the answer to a says of its identity and of reservations.
func noteOutcome(n map[string]int, a *decide.Ask) {
	count := func(outcome string, is bool) {
		if is {
			n[outcome]++
		}
	}
	if a.Family == decide.Settle {
		count(fmt.Sprint("settled: ", a.Settled), a.Err == nil)
		count("linked", a.Err == nil && a.Linked && a.Settled > 0)
	}
	count("repeated", a.Repeated)
	count("denied: full", a.Full)
	count("forgotten", a.Forgotten > 0)
	count("lapsed", a.Lapsed > 0)
}

// spender is a client that gives each of its calls a token, and sends a call that has got an error again, perhaps to
// another server, until it is answered. Every other call is a reservation, which it commits in the same way.
type spender struct {
	t       testing.TB
	name    int
	servers []*server
	left    int
	owed    map[string]int64 // units that the calls of all clients should have charged, by key
}

var untilNextYear = slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 1 << 40, Window: 365 * 24 * time.Hour}

// start makes the next call.
func (s *spender) start() {
	if s.left--; s.left < 0 {
		return
	}
	rng := s.servers[0].random
	w := untilNextYear
	w.Quantity = 1 + rng.Int64N(5)
	key, pair := fmt.Append(nil, "{k}", rng.IntN(2)), []byte("{k}both")
	id := idempotency.Call{Token: fmt.Append(nil, s.name, ":", s.left), TTL: time.Hour, Max: 10_000, Seed: rng.Uint64()}
	terms := reservation.Terms{TTL: time.Hour, Max: 10_000}
	actual, keys := w.Quantity, [][]byte{key}
	several := rng.IntN(3) == 0
	if several {
		keys = append(keys, pair)
	}
	reserves := s.left%2 == 0
	if reserves {
		actual = rng.Int64N(8)
	}
	for _, k := range keys {
		s.owed[string(k)] += actual
	}
	s.send(func() *decide.Ask {
		a := &decide.Ask{Family: decide.Window, Key: key, Window: w, ID: id}
		if several {
			a = &decide.Ask{Family: decide.Several, Clauses: []decide.Clause{{Key: key, Window: &w}, {Key: pair, Window: &w}}, Details: make([]limit.Decision, 2), ID: id}
		}
		if reserves {
			if a.Reserve = terms; several {
				a.Reserve.Linked, a.Reserve.Link, a.Reserve.Keys = true, true, [][]byte{pair}
			}
		}
		a.ID.Print = a.Fingerprint()
		return a
	}, func(a *decide.Ask) {
		if !reserves {
			s.start()
			return
		}
		s.send(func() *decide.Ask {
			return &decide.Ask{Family: decide.Settle, Key: key, ID: id, Settlement: reservation.Settlement{Op: reservation.Commit, Actual: actual}}
		}, func(a *decide.Ask) {
			require.GreaterOrEqual(s.t, a.Settled, reservation.Before)
			s.start()
		})
	})
}

// send sends what make returns until it is answered without an error, and then calls then.
func (s *spender) send(make func() *decide.Ask, then func(*decide.Ask)) {
	at := s.servers[s.servers[0].random.IntN(len(s.servers))]
	a := make()
	at.Submit([]*decide.Ask{a}, false, func() {
		var away decide.Unavailable
		if errors.As(a.Err, &away) {
			at.after(at.upTo(50*time.Millisecond), func() { s.send(make, then) })
			return
		}
		require.NoError(s.t, a.Err)
		at.after(at.upTo(10*time.Millisecond), func() { then(a) })
	})
}

// TestATokenIsChargedOnce: clients with tokens send their calls again, to any server, until they are answered, while
// requests and replies are lost. At the end each token is charged once, and each reservation counts what was committed.
// Calls without tokens in between are charged at most once, and those that were answered exactly once.
func TestATokenIsChargedOnce(t *testing.T) {
	for seed := range uint64(effort.Steps(6, 200)) {
		c := newCloud(seed)
		n := network{there: time.Millisecond, back: time.Millisecond, jitter: 2 * time.Millisecond, timeout: 10 * time.Millisecond}
		if seed%3 > 0 {
			n.drops, n.cuts, n.silences, n.repeats, n.late = .1, .15, .15, .1, 100*time.Millisecond
		}
		var servers []*server
		for range 3 {
			servers = append(servers, serve(c.join(n), bounds()))
		}
		owed := map[string]int64{}
		var clients []*spender
		for i := range 8 {
			s := &spender{t: t, name: i, servers: servers, left: 30, owed: owed}
			clients = append(clients, s)
			s.start()
		}
		var plain []*toll
		for _, s := range servers {
			plain = append(plain, s.callers(1, 5*time.Millisecond, 2*time.Second, func() *decide.Ask {
				w := untilNextYear
				w.Quantity = 1
				return &decide.Ask{Family: decide.Window, Key: []byte("{k}0"), Window: w}
			}))
		}
		c.runFor(10 * time.Minute)
		for _, s := range clients {
			require.Negative(t, s.left)
		}
		sure, perhaps := int64(0), int64(0)
		for _, p := range plain {
			sure, perhaps = sure+p.admitted, perhaps+p.failed
		}
		calm := serve(c.join(network{}), bounds())
		for key, want := range owed {
			a := &decide.Ask{Family: decide.Window, Key: []byte(key), Window: untilNextYear}
			calm.call(t, a)
			require.NoError(t, a.Err)
			used := untilNextYear.Limit - a.Decision.Remaining
			if key == "{k}0" {
				require.GreaterOrEqual(t, used, want+sure, "seed %d: %s", seed, key)
				require.LessOrEqual(t, used, want+sure+perhaps, "seed %d: %s", seed, key)
				continue
			}
			require.Equal(t, want, used, "seed %d: %s", seed, key)
		}
		if seed%3 > 0 {
			require.NotEmpty(t, servers[0].policy.reasons, "some calls were answered with an error")
		}
	}
}
