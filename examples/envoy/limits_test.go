//go:build real

package envoy_test

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// year is the window of the rules of the tests, in seconds.
const year = 31_536_000

// testLimits: what Envoy admits is what the rules say, for each value of a descriptor.
func (m *machine) testLimits(t *testing.T) {
	g := m.start(t, patient)
	g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", "small", "LIMITS", "SW", 2, year, "FIXED")
	require.Equal(t, []int{200, 200, 429}, g.statuses(3, "/", "small"))
	require.Equal(t, append(slices.Repeat([]int{200}, 100), 429, 429), g.statuses(102, "/", "one"))
	require.Equal(t, []int{200}, g.statuses(1, "/", "other"), "another value has a limit of its own")
	denied := g.must(g.limited, "/", "X-Tenant", "one")
	require.Equal(t, "true", denied.header.Get("X-Envoy-Ratelimited"))
	require.Empty(t, denied.header.Get("RateLimit-Limit"))
	require.Equal(t, 200, g.must(g.limited, "/").status, "nothing to limit by")

	// Two descriptors: a tenant, and a user of it.
	of := func(tenant, user string) int {
		return g.must(g.limited, "/", "X-Tenant", tenant, "X-User", user).status
	}
	for range 20 {
		require.Equal(t, 200, of("many", "ada"))
	}
	require.Equal(t, 429, of("many", "ada"))
	require.Equal(t, 200, of("many", "bob"))
	require.Equal(t, 200, of("few", "ada"))
	require.Equal(t, int64(22), g.used("rls.shop.tenant", "many"))
	require.Equal(t, int64(20), g.used("rls.shop.plan.user", "many|ada"))
}

// testHitsAddend: a request counts as much as envoy.yaml says, before the request or after its response.
func (m *machine) testHitsAddend(t *testing.T) {
	g := m.start(t, patient)
	require.Equal(t, append(slices.Repeat([]int{200}, 20), 429), g.statuses(21, "/batch/", "five"))

	// Each response costs 250 of 1000. The count of exactly the limit is not over it.
	for i, want := range []int{200, 200, 200, 200, 200, 429, 429} {
		a := g.must(g.limited, "/model/", "X-Tenant", "llm")
		require.Equal(t, want, a.status, "request %d", i)
		require.Empty(t, a.header.Get("X-Tokens"))
		within(t, "the cost is reported", func() bool { return g.used("rls.shop.tokens", "llm") == int64(min(1000, 250*(i+1))) })
		if i == 4 { // the cost beyond the limit is not in the number of RL.USE
			within(t, "the fifth cost is reported", func() bool { return g.must(g.limited, "/model/", "X-Tenant", "llm").status == 429 })
		}
	}
}

// testHeaderFields: the client gets the header fields of rls-headers.
func (m *machine) testHeaderFields(t *testing.T) {
	g := m.start(t, patient)
	g.server.Do("CONFIG", "SET", "rls-headers", "ratelimit")
	g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", "small", "LIMITS", "SW", 2, year, "FIXED")
	for _, want := range []struct {
		status    int
		remaining string
	}{{200, "1"}, {200, "0"}, {429, "0"}} {
		a := g.must(g.limited, "/", "X-Tenant", "small")
		require.Equal(t, want.status, a.status)
		require.Equal(t, "2", a.header.Get("RateLimit-Limit"))
		require.Equal(t, want.remaining, a.header.Get("RateLimit-Remaining"))
		reset, err := strconv.Atoi(a.header.Get("RateLimit-Reset"))
		require.NoError(t, err)
		require.LessOrEqual(t, reset, year)
		require.Positive(t, reset)
	}
	g.server.Do("CONFIG", "SET", "rls-headers", "X-Max X-Left X-Seconds")
	a := g.must(g.limited, "/", "X-Tenant", "other")
	require.Equal(t, "99", a.header.Get("X-Left"))
	require.Empty(t, a.header.Get("RateLimit-Limit"))
}

// testCommandsUnderLoad changes the limits of a tenant while requests of it and of another tenant run.
func (m *machine) testCommandsUnderLoad(t *testing.T) {
	g := m.start(t, patient)
	for _, tenant := range []string{"acme", "calm"} {
		g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", tenant, "LIMITS", "SW", 1_000_000, year, "FIXED")
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	var busy, wrong atomic.Int64
	for i := range 8 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := g.get(g.limited, "/", "X-Tenant", []string{"acme", "calm"}[i%2])
				busy.Add(1)
				if err != nil || a.status != 200 && i%2 == 1 {
					wrong.Add(1)
				}
			}
		})
	}
	defer work.Wait()
	defer close(stop)
	under := func(want int) { // the load and requests of the test agree
		t.Helper()
		for before := busy.Load(); busy.Load() < before+50; {
			require.Equal(t, want, g.must(g.limited, "/", "X-Tenant", "acme").status)
		}
	}
	under(200)
	for range 5 {
		g.server.Do("RL.BLOCK", "rls.shop.tenant", "acme", "EX", 3600, "REASON", "loop")
		under(429)
		require.Contains(t, g.server.Do("RL.EXPLAIN", "rls.shop.tenant", "acme"), "loop")
		g.server.Do("RL.UNBLOCK", "rls.shop.tenant", "acme")
		under(200)
		g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", "acme", "LIMITS", "SW", 0, year, "FIXED")
		under(429)
		g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", "acme", "LIMITS", "SW", 1_000_000, year, "FIXED")
		under(200)
	}
	require.Zero(t, wrong.Load(), "the other tenant passes")
}

// testServerAway: failure_mode_deny decides what a request becomes while the server is away.
func (m *machine) testServerAway(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		status  int
	}{
		"pass": {nil, 200},
		"deny": {[]change{{"failure_mode_deny: false", "failure_mode_deny: true"}}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			g := m.start(t, append(test.changes, patient, change{"interval: 5s", "interval: 0.1s"})...)
			require.Equal(t, []int{200}, g.statuses(1, "/", "x"))
			g.server.Do("RL.BLOCK", "rls.shop.tenant", "bad")
			require.Equal(t, []int{429}, g.statuses(1, "/", "bad"))
			g.server.Kill()
			require.Equal(t, slices.Repeat([]int{test.status}, 3), g.statuses(3, "/", "bad"))
			require.Equal(t, 403, g.must(g.checked, "/").status, "a check is denied, as failure_mode_allow says")
			g.server.Restart()
			g.server.Do("RL.BLOCK", "rls.shop.tenant", "bad")
			within(t, "Envoy asks again", func() bool { return slices.Equal(g.statuses(1, "/", "bad"), []int{429}) })
		})
	}
}

// testTimeouts reports how many calls took longer than the 20 ms that Envoy waits by default, beside a busy load of
// the Redis protocol. How many there are depends on the machine.
func (m *machine) testTimeouts(t *testing.T) {
	const callers, lasts = 32, 5 * time.Second
	g := m.start(t)
	g.server.Do("RL.OVERRIDE", "SET", "rls.shop.tenant", "busy", "LIMITS", "SW", 1_000_000_000, year, "FIXED")
	var work sync.WaitGroup
	var answered, passed, resp atomic.Int64
	began := time.Now()
	for range callers {
		work.Go(func() {
			for time.Since(began) < lasts {
				if a, err := g.get(g.limited, "/", "X-Tenant", "busy"); err == nil {
					answered.Add(1)
					if a.status == 200 {
						passed.Add(1)
					}
				}
			}
		})
	}
	for range 2 {
		work.Go(func() {
			c := redis.NewClient(g.server.ClientOptions())
			defer c.Close() //nolint:errcheck // nothing is sent any more
			for time.Since(began) < lasts {
				pipe := c.Pipeline()
				for range 16 {
					pipe.Do(t.Context(), "CL.THROTTLE", "resp", 1_000_000, 1_000_000, 1)
				}
				if _, err := pipe.Exec(t.Context()); err == nil {
					resp.Add(16)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	work.Wait()
	took := time.Since(began).Seconds()
	require.Equal(t, answered.Load(), passed.Load(), "the limit is far away")
	decided, late := g.stat("cluster.application.ratelimit.ok"), g.stat("cluster.application.ratelimit.error")
	t.Logf("%.0f requests/s beside %.0f commands/s: %d decided, %d passed without a decision after 20 ms (%d timeouts)",
		float64(answered.Load())/took, float64(resp.Load())/took, decided, late, g.stat("cluster.rls.upstream_rq_timeout"))
	require.Equal(t, answered.Load(), decided+late)
}
