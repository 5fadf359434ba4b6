package concurrency_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// model is the definition of the family: what each member holds. It is written for readability.
type model map[string]holding

// holding is a lease with a number of places.
type holding struct {
	until  limit.Instant
	places int64
}

// expire removes the leases that are no longer live at now.
func (m model) expire(now limit.Instant) {
	maps.DeleteFunc(m, func(_ string, h holding) bool { return h.until <= now })
}

// latest returns how long the last lease lasts after now.
func (m model) latest(now limit.Instant) (last time.Duration) {
	for _, h := range m {
		last = max(last, h.until.Sub(now))
	}
	return last
}

// used returns the number of places in use.
func (m model) used() (n int64) {
	for _, h := range m {
		n += h.places
	}
	return n
}

// byEnd returns the holdings of all members but one, those that end first in front.
func (m model) byEnd(but string) (all []holding) {
	for name, h := range m {
		if name != but {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b holding) int { return cmp.Compare(a.until, b.until) })
	return all
}

// acquire decides an Acquire and returns the decision without ResetAfter.
func (m model) acquire(now limit.Instant, c *concurrency.Call) limit.Decision {
	d := limit.Decision{Limit: c.Limit, RetryAfter: limit.NoRetry}
	name := string(c.Member)
	own := m[name].places
	n := c.Places
	if n == 0 {
		n = max(1, own)
	}
	needed := m.used() - own + n
	switch {
	case c.Limit > 0 && (c.Force || n <= own || needed <= c.Limit):
		if !c.Peek {
			m[name] = holding{until: now.Add(c.Lease), places: n}
		}
	default:
		d.Refused = 1
		for _, h := range m.byEnd(name) {
			if n > c.Limit || c.Limit == 0 {
				break
			}
			if needed -= h.places; needed <= c.Limit {
				d.RetryAfter = h.until.Sub(now)
				break
			}
		}
	}
	d.Remaining = max(0, c.Limit-m.used())
	return d
}

func (m model) call(now limit.Instant, c *concurrency.Call) limit.Decision {
	m.expire(now)
	d := limit.Decision{RetryAfter: limit.NoRetry}
	name := string(c.Member)
	switch h, held := m[name]; {
	case c.Op == concurrency.Acquire:
		d = m.acquire(now, c)
	case !held:
		d.Refused = 1
	case c.Op == concurrency.Release:
		delete(m, name)
	default:
		m[name] = holding{until: now.Add(c.Lease), places: h.places}
	}
	d.ResetAfter = m.latest(now)
	return d
}

// traffic is one kind of random calls on one key.
type traffic struct {
	steps int
	// names to choose from, and the limit that most calls have.
	names, most int
	// longest is the length of the longest name.
	longest int
	// lease is the duration that most calls ask for.
	lease time.Duration
	// One call in release is a Release. One in varied has another limit or lease.
	release, varied int
	// pause is the longest usual pause between two calls. A few are longer.
	pause time.Duration
	// places is the largest number of places that a call asks for; 0 means 1.
	places int64
}

// TestDecisionsAgreeWithTheModel compares every decision of more than a million random calls with
// the model, and from time to time everything that is stored.
func TestDecisionsAgreeWithTheModel(t *testing.T) {
	second := time.Second
	kinds := map[string]traffic{
		"one place":     {steps: 200_000, names: 4, most: 1, longest: 8, lease: second, release: 4, varied: 8, pause: second / 2},
		"a few":         {steps: 550_000, names: 12, most: 6, longest: 40, lease: 5 * second, release: 4, varied: 8, pause: second},
		"list or index": {steps: 150_000, names: 130, most: 100, longest: 30, lease: 90 * second, release: 3, varied: 9, pause: second / 2},
		"index":         {steps: 100_000, names: 500, most: 300, longest: 20, lease: 300 * second, release: 4, varied: 20, pause: second},
		"long names":    {steps: 30_000, names: 150, most: 120, longest: 1024, lease: 100 * second, release: 3, varied: 20, pause: second},
		"places":        {steps: 550_000, names: 12, most: 20, longest: 40, lease: 5 * second, release: 4, varied: 8, pause: second, places: 9},
		"many places":   {steps: 100_000, names: 300, most: 900, longest: 20, lease: 300 * second, release: 4, varied: 20, pause: second, places: 7},
		"few places":    {steps: 150_000, names: 130, most: 110, longest: 30, lease: 90 * second, release: 3, varied: 9, pause: second / 2, places: 2},
		"bursts":        {steps: 20_000, names: 3000, most: 900, longest: 16, lease: second, release: 50, varied: 1000, pause: second / 1000},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind.steps = effort.Steps(kind.steps/20, kind.steps)
			kind.play(t, rand.New(rand.NewPCG(uint64(kind.steps), uint64(kind.names))))
		})
	}
}

func (k traffic) play(t *testing.T, r *rand.Rand) {
	names := make([]string, k.names)
	for i := range names {
		names[i] = fmt.Sprint(i) + strings.Repeat("x", r.IntN(max(1, k.longest-len(fmt.Sprint(i)))))
	}
	var (
		stored key
		m      = model{}
		now    = t0
		large  = 0
	)
	for step := range k.steps {
		now += k.advance(r, m, now)
		c := k.random(r, names)
		if want, got := m.call(now, c), stored.call(t, now, c); want != got {
			require.Equal(t, want, got, "step %d at %d: %+v", step, now, c)
		}
		if len(stored.value) > 0 && stored.value[0]%2 == 0 {
			large++
		}
		if step%500 == 0 {
			sameAsModel(t, m, &stored, now, names)
		}
	}
	t.Logf("%d of %d steps left a large set", large, k.steps)
	if effort.Long() {
		require.Equal(t, k.most > 64, large > 0, "the form that this traffic is about")
	}
}

// advance returns the instant of the next call: often the same one, often that of an expiry.
func (k traffic) advance(r *rand.Rand, m model, now limit.Instant) limit.Instant {
	if r.IntN(40*k.names) == 0 {
		return limit.Instant(r.Int64N(int64(k.lease) * 2))
	}
	switch n := r.IntN(100); {
	case n < 30:
		return 0
	case n < 35:
		return 1
	case n < 40:
		if m.expire(now); len(m) > 0 {
			return max(0, limit.Instant(m.byEnd("")[0].until.Sub(now))+limit.Instant(r.IntN(3)-1))
		}
	}
	return limit.Instant(r.Int64N(int64(k.pause)))
}

func (k traffic) random(r *rand.Rand, names []string) *concurrency.Call {
	member := names[r.IntN(len(names))]
	lease, most := k.lease, int64(k.most)
	if r.IntN(k.varied) == 0 {
		lease = time.Duration(1 + r.Int64N(2*int64(k.lease)))
	}
	if r.IntN(k.varied) == 0 {
		most = 1 + r.Int64N(2*most)
	}
	switch {
	case r.IntN(k.release) == 0:
		return release(member)
	case r.IntN(8) == 0:
		return renew(member, lease)
	case r.IntN(8) == 0:
		return peek(member, most, lease)
	}
	c := acquire(member, most, lease)
	if k.places > 1 {
		if r.IntN(3) == 0 {
			c.Places = r.Int64N(k.places + 1)
		}
		c.Force = r.IntN(50) == 0
	}
	return c
}

// sameAsModel compares what is stored member by member.
func sameAsModel(t *testing.T, m model, k *key, now limit.Instant, names []string) {
	t.Helper()
	if m.expire(now); len(m) == 0 {
		return
	}
	require.NoError(t, concurrency.Check(k.mode, k.value))
	require.Equal(t, now.Add(m.latest(now)), k.expiry)
	listed := model{}
	last, more := concurrency.List(k.mode, k.value, now, nil, true, len(names)+len(k.value), func(name []byte, until limit.Instant, places int64) {
		listed[string(name)] = holding{until, places}
	})
	require.False(t, more, "%q", last)
	require.Equal(t, m, listed)
	used := concurrency.Describe(k.mode, k.value, now, func(string, int64) {})
	require.Equal(t, m.used(), used)
	if used > int64(len(m)) {
		require.Equal(t, concurrency.Places, k.mode)
	}
	for _, name := range names {
		// A member passes a limit of 1 iff it holds a lease or no member does.
		d := k.call(t, now, peek(name, 1, 1))
		_, held := m[name]
		require.Equal(t, held, d.Allowed(), name)
	}
}
