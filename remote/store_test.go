package remote

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// silent is a policy that answers with an error, or, if it is open, as if all were admitted.
type silent struct {
	open    bool
	mu      sync.Mutex
	reasons map[reason]int
}

func (s *silent) closed([]byte) bool { return !s.open }

func (s *silent) answer(a *decide.Ask, why reason) {
	s.mu.Lock()
	if s.reasons == nil {
		s.reasons = map[reason]int{}
	}
	s.reasons[why]++
	s.mu.Unlock()
	if s.open {
		a.Err, a.Decision = nil, limit.Decision{RetryAfter: limit.NoRetry}
		return
	}
	a.Err = decide.Unavailable(why)
}

// bounds returns the limits of a store by default.
func bounds() limits {
	return limits{prefix: "cs:", timeout: 50 * time.Millisecond, maxValue: 64 << 10}
}

// server is a store on a machine of its own.
type server struct {
	*Store
	*machine
	policy *silent
}

func serve(m *machine, l limits) *server {
	p := &silent{}
	return &server{newStore(m, m, p, l), m, p}
}

// Now returns the instant of the store.
func (s *server) Now() limit.Instant { return s.machine.Now() }

// call decides asks together and advances time until the answer.
func (s *server) call(t testing.TB, asks ...*decide.Ask) {
	t.Helper()
	answered := false
	s.Submit(asks, false, func() { answered = true })
	for i := 0; !answered; i++ {
		require.Less(t, i, 1_000_000, "an answer comes")
		require.NotEmpty(t, s.due, "something is to come")
		s.runUntil(s.due[0].at)
	}
}

// perHour is a quota whose units do not come back during a test.
func perHour(t testing.TB, most int64) gcra.Quota {
	t.Helper()
	q, err := gcra.NewQuota(most-1, 1, 3600)
	require.NoError(t, err)
	return q
}

// take asks for units of a key.
func take(t testing.TB, key string, most, quantity int64) *decide.Ask {
	t.Helper()
	return &decide.Ask{Family: decide.Cell, Key: []byte(key), Quota: perHour(t, most), Quantity: quantity}
}

func admin(key string, op decide.Op) *decide.Ask {
	return &decide.Ask{Family: decide.Admin, Key: []byte(key), Admin: decide.AdminCall{Op: op}}
}

// used returns the units that take has charged to a key, by the value in the engine.
func (s *server) used(key string) int64 {
	return charged(s.look([]byte("cs:"+key)), s.civil(), time.Hour)
}

func TestOneCallReadsAndWrites(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	a := take(t, "k", 2, 1)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, a.Decision.Allowed())
	require.EqualValues(t, 1, a.Decision.Remaining)
	require.Equal(t, 4*time.Millisecond, s.Elapsed(), "a read and a write")
	require.EqualValues(t, 1, s.used("k"))

	s.call(t, a)
	require.True(t, a.Decision.Allowed())
	require.Equal(t, 6*time.Millisecond, s.Elapsed(), "nobody else writes the key: no read")
	require.EqualValues(t, 2, s.used("k"))

	s.call(t, a)
	require.False(t, a.Decision.Allowed())
	require.Equal(t, 8*time.Millisecond, s.Elapsed(), "a refusal is read, not written")
	require.EqualValues(t, 2, s.used("k"))
	require.Equal(t, 2, c.ops.gets)
	require.Equal(t, 2, c.ops.swaps)

	for _, op := range []decide.Op{decide.Exists, decide.Type, decide.Expiry, decide.Persist, decide.Text, decide.Describe, decide.Delete} {
		x := admin("k", op)
		s.call(t, x)
		require.NoError(t, x.Err)
		require.True(t, x.Result.Found)
	}
	require.Nil(t, c.get([]byte("cs:k")))
	gone := admin("k", decide.Delete)
	s.call(t, gone)
	require.False(t, gone.Result.Found)
}

// TestWhatWaitsIsDecidedAtOnce: the next exchange of a key decides all calls together, in their
// order, that were submitted during the present one.
func TestWhatWaitsIsDecidedAtOnce(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	var order, admitted []int
	for i := range 3000 {
		a := take(t, "k", 100, 1)
		s.Submit([]*decide.Ask{a}, false, func() {
			require.NoError(t, a.Err)
			order = append(order, i)
			if a.Decision.Allowed() {
				admitted = append(admitted, i)
			}
		})
	}
	s.runFor(time.Second)
	require.Len(t, order, 3000)
	require.IsIncreasing(t, order)
	require.Len(t, admitted, 100)
	require.Equal(t, 99, admitted[99])
	require.EqualValues(t, 100, s.used("k"))
	require.Equal(t, 2, c.ops.swaps, "1 call, then 1,024; the rest is refused")
	require.Equal(t, 4, c.ops.gets)
	require.Empty(t, s.policy.reasons)
}
