package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestStoragesAgree plays the same random commands of every kind on keyspaces over
// each storage and compares all answers: whatever a family does to its bytes, in
// place or not, must come out the same.
func TestStoragesAgree(t *testing.T) {
	steps := 600_000
	if testing.Short() {
		steps /= 10
	}
	clock := clocktest.New(t0)
	var names []string
	var views []*keyspace.View
	for _, name := range keyspace.Storages() {
		ks := keyspace.New(keyspace.Options{Clock: clock}.With(name))
		t.Cleanup(ks.Close)
		names = append(names, name)
		views = append(views, ks.NewView())
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for step := range steps {
		if rng.IntN(3) == 0 {
			clock.Advance(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		}
		do := randomCommand(t, rng)
		want := ""
		for i, v := range views {
			v.Refresh()
			got := do(v)
			if i == 0 {
				want = got
			} else if got != want {
				require.Equal(t, want, got, "step %d: %s and %s", step, names[0], names[i])
			}
		}
	}
	for _, v := range views[1:] {
		require.Equal(t, views[0].Keyspace().Stats().Kinds, v.Keyspace().Stats().Kinds)
		require.Equal(t, scanAll(views[0], 0, 10), scanAll(v, 0, 10))
	}
}

// randomCommand draws a command; it returns its answer as text, and the expiry of
// the key afterwards.
func randomCommand(t testing.TB, rng *rand.Rand) func(v *keyspace.View) string {
	kind := rng.IntN(10)
	k := fmt.Append(nil, "key:", kind, ":", rng.IntN(30))
	if rng.IntN(50) == 0 { // now and then a command on a key of another family
		k = fmt.Append(nil, "key:", rng.IntN(10), ":", rng.IntN(30))
	}
	var do func(v *keyspace.View) (any, error)
	switch op := rng.IntN(40); {
	case op == 0:
		do = func(v *keyspace.View) (any, error) { return v.Delete(0, k), nil }
	case op == 1:
		in := time.Duration(rng.Int64N(int64(3 * time.Second)))
		do = func(v *keyspace.View) (any, error) { return v.Expire(0, k, v.Now().Add(in), 0), nil }
	case op == 2:
		do = func(v *keyspace.View) (any, error) { return v.Persist(0, k), nil }
	case op == 3:
		to := fmt.Append(nil, "key:", kind, ":", rng.IntN(30))
		do = func(v *keyspace.View) (any, error) {
			renamed, found := v.Rename(0, k, to, false)
			return fmt.Sprint(renamed, found), nil
		}
	case op == 4:
		value := make([]byte, rng.IntN(6000))
		do = func(v *keyspace.View) (any, error) {
			return nil, v.Put(0, append(k, 's'), keyspace.String, value, keyspace.NoExpiry)
		}
	case op == 5 && rng.IntN(500) == 0:
		do = func(v *keyspace.View) (any, error) { v.Flush(0); return nil, nil }
	default:
		do = randomLimiter(t, rng, kind, k)
	}
	return func(v *keyspace.View) string {
		answer, err := do(v)
		at, has, exists := v.Expiry(0, k)
		return fmt.Sprint(answer, err, at, has, exists)
	}
}

func randomLimiter(t testing.TB, rng *rand.Rand, kind int, k []byte) func(v *keyspace.View) (any, error) {
	quantity := rng.Int64N(12) - 2
	switch {
	case kind == 0:
		q, err := gcra.NewQuota(rng.Int64N(40), 1+rng.Int64N(100), 10)
		require.NoError(t, err)
		return func(v *keyspace.View) (any, error) { return answer(v.Throttle(0, k, &q, quantity)) }
	case kind < 5:
		c := windowIn(slidingwindow.Mode(kind), quantity)
		c.Limit, c.Window = 20_000, time.Duration(1+rng.IntN(2))*10*time.Minute
		if kind == int(slidingwindow.Buckets) {
			c.Slots = 2 + rng.IntN(3)*400
		}
		return func(v *keyspace.View) (any, error) { return answer(v.Allow(0, k, c)) }
	case kind < 9:
		c := bucket(tokenbucket.Mode(kind-4), quantity)
		c.Init = 10 - rng.Int64N(2)*5
		return func(v *keyspace.View) (any, error) { return answer(v.Acquire(0, k, c)) }
	}
	c := &concurrency.Call{
		Op: concurrency.Op(rng.IntN(4) % 3), Member: fmt.Appendf(nil, "member:%0*d", rng.IntN(200), rng.IntN(400)),
		Limit: 300, Lease: time.Duration(1 + rng.Int64N(int64(20*time.Minute))),
	}
	if c.Op == concurrency.Release {
		c.Lease = 0
	}
	if c.Op != concurrency.Acquire {
		c.Limit = 0
	}
	return func(v *keyspace.View) (any, error) { return answer(v.Lease(0, k, c)) }
}

func answer(d limit.Decision, err error) (any, error) { return d, err }
