package keyspace_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// asked is a call as porcupine sees it. The instant at which it was decided belongs to the input,
// because the stepped clock and the shard determine it; this makes the model deterministic.
type asked struct {
	key      int
	quantity int64
	at       limit.Instant
}

// throttleModel is the model of one key, its TAT. The answer to a call must be that of a fresh
// decision on the TAT that the calls before it have left.
func throttleModel(q *gcra.Quota) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[int][]porcupine.Operation{}
			for _, op := range history {
				k := op.Input.(asked).key
				byKey[k] = append(byKey[k], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return limit.Instant(0) },
		Step: func(state, input, output any) (bool, any) {
			in, tat := input.(asked), state.(limit.Instant)
			next, d, write := gcra.Decide(tat, in.at, q, in.quantity)
			if !write {
				next = tat
			}
			return d == output.(limit.Decision), next
		},
	}
}

// linearizableSeeds returns the number of histories that are checked, of 12,800 calls each.
func linearizableSeeds() int { return effort.Steps(1, 10) }

// TestThrottleIsLinearizable has 32 goroutines call the same few keys while the clock is stepped
// and the sweeper runs, and lets porcupine search for an order of the calls that explains every
// answer. On a busy machine more calls overlap, and there may be too many orders to search: a
// search that does not end proves nothing.
func TestThrottleIsLinearizable(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		for seed := range linearizableSeeds() {
			history, q := throttleHistory(t, o, uint64(seed))
			found := porcupine.CheckOperationsTimeout(throttleModel(q), history, 60*time.Second)
			require.NotEqual(t, porcupine.Illegal, found, "seed %d", seed)
			if found == porcupine.Unknown {
				t.Logf("seed %d: there are too many orders", seed)
			}
		}
	})
}

func throttleHistory(t *testing.T, o keyspace.Options, seed uint64) ([]porcupine.Operation, *gcra.Quota) {
	const clients, calls, keys = 32, 400, 40
	ks, _, clock := open(t, o)
	q, err := gcra.NewQuota(4, 10, 1)
	require.NoError(t, err)
	var ticks atomic.Int64
	histories := make([][]porcupine.Operation, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			v, rng := ks.NewHandle(), rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range calls {
				if i%8 == 0 {
					clock.Advance(time.Duration(rng.Int64N(int64(5 * time.Millisecond))))
				}
				if i%100 == 0 {
					ks.Sweep(64)
				}
				k, n := rng.IntN(keys), rng.Int64N(4)-1
				v.Refresh()
				call := ticks.Add(1)
				d, err := asks.Throttle(v, 0, key(k), &q, n)
				at := v.Now() // the shard may have a later instant than the batch
				if err != nil {
					t.Error(err)
				}
				histories[c] = append(histories[c], porcupine.Operation{
					ClientId: c, Input: asked{k, n, at}, Call: call, Output: d, Return: ticks.Add(1),
				})
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all, &q
}

// TestNeverOverAdmits calls with the real clock from 32 goroutines and checks each pair of admitted
// calls of a key: the number of calls admitted between them is at most the burst and what the
// elapsed time allows in addition.
func TestNeverOverAdmits(t *testing.T) {
	const clients, calls, keys = 32, 3000, 4
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		o.Clock = clock.NewSystem(clock.Options{})
		ks := keyspace.New(o)
		t.Cleanup(ks.Close)
		q, err := gcra.NewQuotaPer(9, 1, 1, 50*time.Microsecond)
		require.NoError(t, err)
		begun := time.Now()
		histories := make([][]admission, clients)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				v, rng := ks.NewHandle(), rand.New(rand.NewPCG(uint64(c), 9))
				for range calls {
					k := rng.IntN(keys)
					call := time.Since(begun)
					v.Refresh()
					d, err := asks.Throttle(v, 0, key(k), &q, 1)
					back := time.Since(begun)
					if err != nil {
						t.Error(err)
					}
					if d.Allowed() {
						histories[c] = append(histories[c], admission{k, call, back})
					}
				}
			})
		}
		wg.Wait()
		byKey := make([][]admission, keys)
		for _, h := range histories {
			for _, a := range h {
				byKey[a.key] = append(byKey[a.key], a)
			}
		}
		for k, admitted := range byKey {
			require.NoError(t, overAdmission(admitted, 10, 50*time.Microsecond), "key %d", k)
			require.Greater(t, len(admitted), 10)
		}
	})
}

type admission struct {
	key       int
	call, end time.Duration
}

// overAdmission returns an error if in some span more than most calls, and one per interval in
// addition, were admitted. A call is decided between its start and its end. So the span from the
// start of one call to the end of another counts the calls that lie in it wholly.
func overAdmission(a []admission, most int, interval time.Duration) error {
	slices.SortFunc(a, func(x, y admission) int { return cmp.Compare(x.end, y.end) })
	for i := range a {
		within := 0
		for j := range a {
			if a[j].call < a[i].call {
				continue
			}
			within++
			span := a[j].end - a[i].call
			if allowed := most + int(span/interval); within > allowed {
				return fmt.Errorf("%d admitted within %v, %d allowed", within, span, allowed)
			}
		}
	}
	return nil
}
