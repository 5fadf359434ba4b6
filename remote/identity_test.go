package remote

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
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
