//go:build real

package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// These are the numbers of TestAFleetChangesOverridesUnderLoad. Each override is changed once, from the limit oldLimit to
// newLimit.
const (
	fleetServers   = 3
	fleetOverrides = 10_000
	fleetCallers   = 2 // of each server
	oldLimit       = 100_001
	newLimit       = 200_001
)

// member is a server of a fleet, which may be stopped and started again, and a client of it.
type member struct {
	url string

	mu     sync.Mutex
	served *inproc.Served
	client *redis.Client
}

// start starts the server, and returns when it has the policies of the store.
func (m *member) start(t *testing.T) {
	s := inproc.ServeTimed(t, "auto", "--store", m.url, "--store-timeout", "500", "--fail-policy", "closed")
	c := redis.NewClient(&redis.Options{Addr: s.Addr().String(), MaxRetries: -1, Protocol: 2, DisableIdentity: true, ReadTimeout: inproc.Patience})
	t.Cleanup(func() { _ = c.Close() })
	inproc.Await(t, "the policies", func() bool { age := info(t, c, "store_policies_age_ms"); return age != "-1" && age != "" })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served, m.client = s, c
}

// stop stops the server. Until start, on returns nil.
func (m *member) stop() {
	m.mu.Lock()
	s := m.served
	m.client = nil
	m.mu.Unlock()
	s.End()
}

// on returns a client of the server, or nil while it is stopped.
func (m *member) on() *redis.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client
}

// info returns a field of INFO, or "" if there is none.
func info(t *testing.T, c *redis.Client, field string) string {
	text, err := c.Info(t.Context(), "everything").Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), field+":"); found {
			return value
		}
	}
	return ""
}

// change is what the client of an override knows of its change. Times are those since the start of the test; 0 is never.
type change struct{ sent, made atomic.Int64 }

// doubt is a decision by another limit than the one that is expected.
type doubt struct {
	key        int
	limit      int64
	began, end time.Duration
}

// fleet is a test in progress.
type fleet struct {
	members []*member
	began   time.Time
	changes [fleetOverrides]change
	calls   atomic.Int64

	mu     sync.Mutex
	doubts []doubt
	faults []string // replies that no failure explains
	errors map[string][]time.Duration
}

func (f *fleet) now() time.Duration { return time.Since(f.began) }

func fleetKey(i int) string { return fmt.Sprint("user:", i) }

// use makes calls to a member until ctx ends.
func (f *fleet) use(ctx context.Context, m *member, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		c := m.on()
		if c == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		key := rng.IntN(fleetOverrides)
		began := f.now()
		five, err := c.Do(ctx, "RL.USE", "api", fleetKey(key)).Int64Slice()
		end := f.now()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && m.on() != c: // it is stopped
		case err != nil:
			f.failed(err, end)
		case len(five) != 5:
			f.fault(fmt.Sprint("the reply ", five))
		default:
			f.calls.Add(1)
			f.decided(doubt{key, five[1], began, end})
		}
	}
}

// decided checks a decision. Whether a decision by the other limit is right is known at the end.
func (f *fleet) decided(d doubt) {
	is := &f.changes[d.key]
	sent, made := time.Duration(is.sent.Load()), time.Duration(is.made.Load())
	switch {
	case d.limit != oldLimit && d.limit != newLimit:
		f.fault(fmt.Sprint("a decision by the limit ", d.limit))
	case d.limit == newLimit && sent == 0:
		f.fault("a decision by a limit that was not set yet")
	case d.limit == oldLimit && made > 0 && d.began > made+inForce:
		f.mu.Lock()
		f.doubts = append(f.doubts, d)
		f.mu.Unlock()
	}
}

func (f *fleet) fault(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) < 20 {
		f.faults = append(f.faults, text)
	}
}

// failed notes an error reply. Only UNAVAILABLE is one that a failure of the store explains.
func (f *fleet) failed(err error, at time.Duration) {
	if !strings.HasPrefix(err.Error(), "UNAVAILABLE ") {
		f.fault(err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[err.Error()] = append(f.errors[err.Error()], at)
}

// set makes every third change, from the given one on, at the member with that number, or at another one while it is stopped.
func (f *fleet) set(ctx context.Context, first int, done *atomic.Int64) {
	for i := first; i < fleetOverrides; i += fleetServers {
		is := &f.changes[i]
		is.sent.Store(int64(f.now()))
		for at := first; ctx.Err() == nil; at++ {
			c := f.members[at%fleetServers].on()
			if c == nil {
				continue // another server makes the change
			}
			err := c.Do(ctx, "RL.OVERRIDE", "SET", "api", fleetKey(i), "LIMITS", "SW", newLimit, "3600").Err()
			if err == nil {
				is.made.Store(int64(f.now()))
				done.Add(1)
				break
			}
			var said redis.Error
			if errors.As(err, &said) && f.members[at%fleetServers].on() == c {
				f.failed(err, f.now())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// TestAFleetChangesOverridesUnderLoad: three servers over a cluster change 10,000 overrides under load, while the master that
// has the policies is killed, and then a server is stopped and started again. At the end all have the same policies, with
// all changes that were acknowledged but those that the failover has taken, which are counted. A decision is by a
// limit that was in force within the bound.
func TestAFleetChangesOverridesUnderLoad(t *testing.T) {
	cluster := storetest.Best(t).Cluster(t, 3, 3, storetest.Options{})
	f := &fleet{errors: map[string][]time.Duration{}}
	for range fleetServers {
		m := &member{url: cluster.URL()}
		m.start(t)
		f.members = append(f.members, m)
	}
	ctx := t.Context()
	first := f.members[0].on()
	require.NoError(t, first.Do(ctx, "RL.POLICY", "SET", "api", "LIMITS", "SW", "1000000", "3600").Err())
	pipe := first.Pipeline()
	for i := range fleetOverrides {
		pipe.Do(ctx, "RL.OVERRIDE", "SET", "api", fleetKey(i), "LIMITS", "SW", oldLimit, "3600")
	}
	began := time.Now()
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	t.Logf("%d overrides set in %v", fleetOverrides, time.Since(began).Round(time.Millisecond))
	f.awaitAgreement(t)

	f.began = time.Now()
	var made atomic.Int64
	calling, end := context.WithCancel(ctx)
	var callers, changers sync.WaitGroup
	for i, m := range f.members {
		for n := range fleetCallers {
			callers.Go(func() { f.use(calling, m, uint64(i*fleetCallers+n)) })
		}
		changers.Go(func() { f.set(ctx, i, &made) })
	}
	reached := func(part int64) {
		inproc.Await(t, "changes", func() bool { return made.Load() >= fleetOverrides*part/10 })
	}
	reached(3)
	master := cluster.Owner(cluster.SlotOf("{policies}:head"))
	killed := f.now()
	master.Kill()
	cluster.AwaitFailover(master)
	f.awaitAgreement(t)
	recovered := f.now()
	t.Logf("%d changes when the master was killed; the servers agreed again after %v", made.Load(), (recovered - killed).Round(time.Millisecond))
	reached(6)
	stopped := f.members[2]
	stopped.stop()
	reached(7)
	stopped.start(t)
	changers.Wait()
	time.Sleep(inForce)
	f.awaitAgreement(t)
	end()
	callers.Wait()
	f.check(t, killed, recovered+inForce)
}

// awaitAgreement returns when all servers that run have confirmed the same version with the store.
func (f *fleet) awaitAgreement(t *testing.T) {
	t.Helper()
	inproc.Await(t, "agreement", func() bool {
		for _, m := range f.members {
			c := m.on()
			if c == nil {
				continue
			}
			age, err := strconv.Atoi(info(t, c, "store_policies_age_ms"))
			if err != nil || age < 0 || age > 1500 || info(t, c, "store_policies_fault") != "" {
				return false
			}
		}
		return true
	})
}

// slowest returns the longest time that a change has taken which was not made between from and to. The bound does not
// cover what a busy machine adds to the time of a request.
func (f *fleet) slowest(from, to time.Duration) (longest time.Duration) {
	for i := range f.changes {
		sent, made := time.Duration(f.changes[i].sent.Load()), time.Duration(f.changes[i].made.Load())
		if made < from || sent > to {
			longest = max(longest, made-sent)
		}
	}
	return longest
}

// check compares the policies of all servers with the changes, and explains the doubts and errors. from and to are the
// times between which a failure of the store explains them.
func (f *fleet) check(t *testing.T, from, to time.Duration) {
	t.Helper()
	var version, listed string
	lost := int64(0)
	for i, m := range f.members {
		c := m.on()
		v, all := info(t, c, "store_policies_version"), fmt.Sprint(c.Do(t.Context(), "RL.OVERRIDE", "LIST", "api").Val())
		if i == 0 {
			version, listed = v, all
		}
		require.Equal(t, version, v)
		require.Equal(t, listed, all, "server %d has other overrides", i)
		n, err := strconv.ParseInt(info(t, c, "store_changes_lost"), 10, 64)
		require.NoError(t, err)
		lost = max(lost, n)
	}
	require.Equal(t, fleetOverrides, strings.Count(listed, "SW "), listed[:min(200, len(listed))])
	taken := map[int]bool{}
	for i := range f.changes {
		five, err := f.members[i%fleetServers].on().Do(t.Context(), "RL.USE", "api", fleetKey(i), "0").Int64Slice()
		require.NoError(t, err)
		if five[1] == newLimit {
			continue
		}
		taken[i] = true
		require.EqualValues(t, oldLimit, five[1], fleetKey(i))
		require.Less(t, time.Duration(f.changes[i].made.Load()), to, "%s is lost, which no failover explains", fleetKey(i))
	}
	t.Logf("%d calls, %d of them by the old limit after the bound; the failover has taken %d changes, and %d are counted",
		f.calls.Load(), len(f.doubts), len(taken), lost)
	require.LessOrEqual(t, int64(len(taken)), lost, "changes are lost and not counted")
	slack := f.slowest(from, to)
	for _, d := range f.doubts {
		made := time.Duration(f.changes[d.key].made.Load())
		explained := taken[d.key] || d.end > from && d.began < to || d.began <= made+inForce+slack
		require.True(t, explained, "%s was decided by an old limit at %v, and the new one was set at %v", fleetKey(d.key), d.began, made)
	}
	for text, times := range f.errors {
		t.Logf("%d times %s", len(times), text)
		for _, at := range times {
			require.True(t, from < at && at < to, "%v: %s", at, text)
		}
	}
	require.Empty(t, f.faults)
}
