package chaos_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// linkBacklog is the backlog of the primaries here: an outage with more changes than this needs
// another full sync.
const linkBacklog = 1 << 20

// linkKeys is how many keys of each type there are.
const linkKeys = 200

// link is a primary with a replica behind a proxy, under load.
type link struct {
	t                      *testing.T
	front                  *front
	primary, replica       *storetest.Node
	primaryDir, replicaDir string
}

// newLink starts the three.
func newLink(t *testing.T) *link {
	t.Helper()
	e := storetest.Cellserver(t, storetest.Engine{})
	l := &link{t: t, primaryDir: t.TempDir(), replicaDir: t.TempDir()}
	args := []string{"--repl-backlog-size", strconv.Itoa(linkBacklog), "--repl-timeout", "2", "--repl-ping-replica-period", "1"}
	l.primary = e.Single(t, storetest.Options{Args: append([]string{"--dir", l.primaryDir}, args...)})
	l.front = newFront(t, l.primary.Addr)
	l.replica = e.Replica(t, storetest.Options{Args: append([]string{"--dir", l.replicaDir}, args...)}, l.primary, l.front.addr)
	return l
}

// count is a number in INFO of the primary.
func (l *link) count(section, field string) int64 {
	l.t.Helper()
	n, err := strconv.ParseInt(l.primary.Info(section)[field], 10, 64)
	require.NoError(l.t, err, field)
	return n
}

func (l *link) full() int64    { return l.count("stats", "sync_full") }
func (l *link) partial() int64 { return l.count("stats", "sync_partial_ok") }
func (l *link) offset() int64  { return l.count("replication", "master_repl_offset") }

// copied is the offset up to which the replica has all.
func (l *link) copied() int64 {
	l.t.Helper()
	n, err := strconv.ParseInt(l.replica.Info("replication")["slave_repl_offset"], 10, 64)
	require.NoError(l.t, err)
	return n
}

// awaitStatus returns when the replica's link is up or down.
func (l *link) awaitStatus(status string) {
	l.t.Helper()
	storetest.Await(l.t, "the link is "+status, func() error {
		if now := l.replica.Info("replication")["master_link_status"]; now != status {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
}

// awaitCaughtUp returns when the link is up and the replica has all that the primary has. The
// primary must not change meanwhile. The clock of a primary goes on, so its offset grows nevertheless.
func (l *link) awaitCaughtUp() {
	l.t.Helper()
	l.awaitStatus("up")
	from := l.offset()
	storetest.Await(l.t, "the replica catches up", func() error {
		if at := l.copied(); at < from {
			return fmt.Errorf("it is at %d of %d", at, from)
		}
		return nil
	})
}

// harm is one way in which a network fails.
type harm struct {
	name string
	// do harms, returns when that has had its effect, and leaves the harm to be healed.
	do func(t *testing.T, l *link, c *churn)
	// size is how many bytes each string has: what makes an outage long for the backlog.
	size int
	// outgrows says that the backlog has to be left.
	outgrows bool
}

// harms are the ways, in the order in which they come.
func harms() []harm {
	return []harm{
		{name: "latency of 100 ms", do: func(t *testing.T, l *link, c *churn) {
			l.front.add(slow(100, 0))
			c.awaitMade(t, scaledCalls(2000))
		}},
		{name: "1 KB/s", do: func(t *testing.T, l *link, c *churn) {
			l.front.add(toxin{Type: "bandwidth", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"rate": 1}})
			from := l.copied()
			c.awaitMade(t, scaledCalls(2000))
			storetest.Await(t, "the replica gets some of it", func() error {
				if got := l.copied() - from; got < int64(scaled(1<<10, 16<<10)) {
					return fmt.Errorf("%d bytes so far", got)
				}
				return nil
			})
			require.Greater(t, l.offset()-l.copied(), int64(16<<10), "the replica is far behind")
		}},
		{name: "connections are reset", do: func(t *testing.T, l *link, c *churn) {
			l.front.add(reset(1))
			l.awaitStatus("down")
			c.awaitMade(t, scaledCalls(500))
		}},
		{name: "a black hole for longer than repl-timeout", do: func(t *testing.T, l *link, c *churn) {
			l.front.add(blackHole)
			l.awaitStatus("down")
		}},
		{name: "connections are cut at random", do: func(t *testing.T, l *link, _ *churn) {
			before := l.partial()
			l.front.add(cut(10))
			storetest.Await(t, "the replica comes back again and again", func() error {
				if times := l.partial() - before; times < int64(scaled(2, 40)) {
					return fmt.Errorf("%d times so far", times)
				}
				return nil
			})
		}},
		{name: "an outage that leaves the backlog", size: 4096, outgrows: true, do: func(t *testing.T, l *link, _ *churn) {
			from := l.offset()
			l.front.refuse()
			l.awaitStatus("down")
			storetest.Await(t, "the backlog is left", func() error {
				if grown := l.offset() - from; grown < 2*linkBacklog {
					return fmt.Errorf("%d bytes so far", grown)
				}
				return nil
			})
			l.front.accept()
		}},
	}
}

// scaledCalls is n, or many times as many at full size.
func scaledCalls(n int64) int64 { return n * int64(scaled(1, 20)) }

// TestReplicaCatchesUpOverNetworksThatFail harms the network between a primary and its replica, in
// several ways and under load. Healed, the link is up and all keys are equal to the nanosecond. The
// replica gets a full copy only where the primary's backlog no longer had what it lacked.
func TestReplicaCatchesUpOverNetworksThatFail(t *testing.T) {
	skipShort(t)
	l := newLink(t)
	undisturbed := startChurn(t, l.primary, 2, linkKeys, 0)
	undisturbed.awaitMade(t, 6000)
	require.NoError(t, undisturbed.end())
	p99, worst := undisturbed.slowest()
	t.Logf("undisturbed: 99 %% of the groups of changes within %s, all within %s", p99.Round(10*time.Microsecond), worst.Round(time.Millisecond))
	for _, h := range harms() {
		l.suffer(h)
	}
}

// suffer does one harm under load, heals it, and compares the two nodes.
func (l *link) suffer(h harm) {
	l.t.Helper()
	began, full, partial, from := time.Now(), l.full(), l.partial(), l.offset()
	c := startChurn(l.t, l.primary, 2, linkKeys, h.size)
	h.do(l.t, l, c)
	l.front.heal()
	require.NoError(l.t, c.end(), "%s: the primary serves as ever", h.name)
	l.awaitCaughtUp()
	grown, copies := l.offset()-from, l.full()-full
	p99, worst := c.slowest()
	l.t.Logf("%s: %s, %d changes, %d KiB; %d full and %d partial syncs; the primary: 99 %% within %s, all within %s", h.name, time.Since(began).Round(time.Millisecond),
		c.made.Load(), grown>>10, copies, l.partial()-partial, p99.Round(10*time.Microsecond), worst.Round(time.Millisecond))
	if h.outgrows {
		require.Positive(l.t, copies, "%s: the backlog was left", h.name)
	} else if grown < linkBacklog {
		require.Zero(l.t, copies, "%s: the backlog had all", h.name)
	}
	has := stored(l.t, l.primary, l.primaryDir)
	require.Greater(l.t, len(has), linkKeys)
	requireSame(l.t, has, stored(l.t, l.replica, l.replicaDir))
}
