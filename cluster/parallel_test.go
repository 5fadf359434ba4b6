package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// TestManyGoroutinesSubmit to several stores of one engine, flights of calls, transactions
// and RL.MULTI, some of which are answered by their deadline: the asks are the askers' again
// then, and what was admitted is charged.
func TestManyGoroutinesSubmit(t *testing.T) {
	const stores, goroutines, flights = 3, 4, 150
	for _, timeout := range []time.Duration{200 * time.Microsecond, time.Minute} {
		i := newInstant()
		var admitted atomic.Int64
		var all sync.WaitGroup
		var opened []*Store
		for n := range stores {
			l := bounds()
			l.timeout = timeout
			s := newStore(i, i, &refusing{}, l)
			opened = append(opened, s)
			for g := range goroutines {
				all.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(n), uint64(g)))
					batch := make([]decide.Ask, 8)
					for range flights {
						var asks []*decide.Ask
						for a := range batch[:1+rng.IntN(8)] {
							batch[a] = *take(t, fmt.Sprint("k", rng.IntN(4)), 1<<40, 1)
							asks = append(asks, &batch[a])
						}
						if rng.IntN(5) == 0 {
							batch[0] = severalOf(t, rng)
							asks = asks[:1]
						}
						done := make(chan struct{})
						s.Submit(asks, rng.IntN(4) == 0, func() { close(done) })
						<-done
						for _, a := range asks {
							if a.Err == nil && a.Decision.Allowed() && !a.Refused {
								admitted.Add(int64(max(1, len(a.Clauses))))
							}
						}
						clear(batch) // they are this goroutine's
					}
				})
			}
		}
		all.Wait()
		// What was answered by its deadline is undone by the next exchange.
		settled := func() bool {
			for _, s := range opened {
				for k := range 4 {
					done := make(chan struct{})
					s.Submit([]*decide.Ask{admin(fmt.Sprint("k", k), decide.Exists)}, false, func() { close(done) })
					<-done
				}
			}
			sum, unknown := int64(0), int64(0)
			for k := range 4 {
				sum += charged(i.get(fmt.Append(nil, "cs:k", k)), i.Now(), time.Hour)
			}
			for _, s := range opened {
				unknown += s.count.unknown.Load() + s.count.kept.Load()
			}
			return sum >= admitted.Load() && sum <= admitted.Load()+unknown
		}
		require.Eventually(t, settled, 20*time.Second, time.Millisecond)
	}
}

// refusing answers with an error.
type refusing struct{}

func (*refusing) closed([]byte) bool { return true }

func (*refusing) answer(a *decide.Ask, why reason) {
	a.Decision, a.Refused, a.Err = limit.Decision{}, false, decide.Unavailable(why)
}

func severalOf(t testing.TB, rng *rand.Rand) decide.Ask {
	a := decide.Ask{Family: decide.Several}
	for k := range 4 {
		if rng.IntN(2) == 0 || k == 3 && len(a.Clauses) == 0 {
			one := take(t, fmt.Sprint("k", k), 1<<40, 1)
			a.Clauses = append(a.Clauses, decide.Clause{Key: one.Key, Quota: &one.Quota, Quantity: 1})
		}
	}
	a.Details = make([]limit.Decision, len(a.Clauses))
	return a
}
