package remote

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/limit"
)

// TestManyGoroutinesSubmit: goroutines submit flights of calls, transactions and RL.MULTI to
// several stores of one engine. Some are answered at their deadline: then the asks belong to the
// caller again, and the admitted units are charged.
func TestManyGoroutinesSubmit(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Millisecond, time.Minute} {
		bubble.Test(t, func(t *testing.T) { manySubmit(t, timeout) })
	}
}

// manySubmit is TestManyGoroutinesSubmit with one time limit.
func manySubmit(t *testing.T, timeout time.Duration) {
	const stores, goroutines, flights = 3, 4, 150
	i := newInstant()
	var admitted, late atomic.Int64
	var all sync.WaitGroup
	var opened []*Store
	for n := range stores {
		l := bounds()
		l.timeout = timeout
		s := newStore(distant{i}, i, &refusing{}, l)
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
						if a.Err != nil {
							late.Add(1)
						}
						if a.Err == nil && a.Decision.Allowed() && !a.Refused {
							admitted.Add(int64(max(1, len(a.Clauses))))
						}
					}
					clear(batch) // the asks belong to this goroutine again
				}
			})
		}
	}
	all.Wait()
	// The next exchange undoes charges of asks that were answered at their deadline.
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
	time.Sleep(time.Second) // requests in progress arrive
	settled()
	time.Sleep(time.Second)
	require.True(t, settled())
	require.Equal(t, timeout < time.Second, late.Load() > 0)
}

// distant is an engine in a bubble. One request in four takes a millisecond to reach it, and so
// does one reply in four.
type distant struct{ *instant }

// Get reads.
func (d distant) Get(key []byte, done func(raw []byte, err error)) {
	own := bytes.Clone(key)
	d.later(func() {
		raw := d.get(own)
		d.later(func() { done(raw, nil) })
	})
}

// Swap compares and sets.
func (d distant) Swap(w Write, done func(applied bool, now []byte, err error)) {
	d.later(func() {
		d.instant.Swap(w, func(applied bool, now []byte, err error) {
			d.later(func() { done(applied, now, err) })
		})
	})
}

// SwapAll compares and sets.
func (d distant) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	d.later(func() {
		d.instant.SwapAll(ws, func(applied bool, now [][]byte, err error) {
			d.later(func() { done(applied, now, err) })
		})
	})
}

// later calls f on a goroutine of its own. Calls without a delay run at once, as many as there are
// processors.
func (d distant) later(f func()) {
	if d.Number()%4 > 0 {
		go f()
		return
	}
	d.AfterFunc(time.Millisecond, f)
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
