//go:build real

package docs_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

const movingPage = "moving-in.md"

// throttles makes an engine without redis-cell replicate CL.THROTTLE: that is what it calls
// INCRBY then. cellserver cannot know what the command did, and reads its key.
var throttles = []string{"--rename-command", "INCRBY", "CL.THROTTLE"}

// charge is what a call adds to a TAT, in nanoseconds.
const charge = 1000

// moving plays the page: machine 1 has the old server, machine 2 gets cellserver.
type moving struct {
	*machines
	old *storetest.Node
	// steps are the blocks of the page that are typed.
	steps steps
	// ours is a client of cellserver.
	ours *redis.Client
	// began are the TATs before the callers came.
	began [limiters]int64
	load  load
}

// steps are the blocks of the page, in its order.
type steps struct {
	password, look, start, attach, user, watch   string
	takeOver, roles, withoutFailover, oldFollows string
	back, refused                                string
}

func readSteps(t *testing.T) (s steps) {
	t.Helper()
	blocks := pageBlocks(t, movingPage, "sh", 12)
	for i, step := range []*string{
		&s.password, &s.look, &s.start, &s.attach, &s.user, &s.watch,
		&s.takeOver, &s.roles, &s.withoutFailover, &s.oldFollows, &s.back, &s.refused,
	} {
		*step = blocks[i]
	}
	return s
}

// newMoving starts the old server, with keys of all types.
func newMoving(t *testing.T, e storetest.Engine) *moving {
	t.Helper()
	m := &moving{machines: newMachines(t), steps: readSteps(t)}
	// From this machine all connections come from one address, so each server says its own.
	m.old = e.Single(t, storetest.Options{Password: "secret", Args: append([]string{
		"--bind", "127.0.0.1", network + "1", "--replica-announce-ip", network + "1",
	}, throttles...)})
	_, port, err := net.SplitHostPort(m.old.Addr)
	require.NoError(t, err)
	m.port = port
	conf := pageBlocks(t, movingPage, "conf", 1)[0]
	conf = strings.Replace(conf, "/var/lib/cellserver", filepath.Join(m.root, "2"), 1)
	m.file("2/limits.conf", m.local(conf)+"\nreplica-announce-ip "+network+"2\n")
	o := m.client("2").Options()
	o.Protocol = 2
	m.ours = redis.NewClient(o)
	t.Cleanup(func() { _ = m.ours.Close() })
	m.fill()
	return m
}

// do types a step at a shell in which the password was typed before.
func (m *moving) do(step string) string {
	m.t.Helper()
	return m.types(m.steps.password + "\n" + step)
}

// sees types the lines of a step until each shows what the page says.
func (m *moving) sees(step string) {
	m.t.Helper()
	shown := shownLine.FindAllStringSubmatch(step, -1)
	require.Len(m.t, shown, strings.Count(step, "\n")+1, "a line that shows nothing: %s", step)
	for _, line := range shown {
		m.awaits(m.steps.password+"\n"+line[1], line[2])
	}
}

// fill makes keys of all types and limiters.
func (m *moving) fill() {
	m.t.Helper()
	ctx := m.t.Context()
	p := m.old.Client.Pipeline()
	for i := range m.began {
		at := time.Now().Add(time.Hour)
		m.began[i] = at.UnixNano()
		p.Set(ctx, fmt.Sprint("cell:", i), at.UnixNano(), 0)
		p.PExpireAt(ctx, fmt.Sprint("cell:", i), at)
	}
	for i := range 100 {
		p.Set(ctx, fmt.Sprint("s:", i), i, time.Duration(i%2)*time.Hour)
		p.RPush(ctx, fmt.Sprint("l:", i%10), i)
		p.HSet(ctx, fmt.Sprint("h:", i), i, i)
		p.SAdd(ctx, fmt.Sprint("set:", i), i)
		p.ZAdd(ctx, fmt.Sprint("z:", i%10), redis.Z{Score: float64(i), Member: i})
	}
	p.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []string{"a", "b"}})
	_, err := p.Exec(ctx)
	require.NoError(m.t, err)
}

// limiters is how many keys of CL.THROTTLE there are, each with a caller.
const limiters = 4

// load is what the callers of the old server did, as far as it was answered.
type load struct {
	stop             atomic.Bool
	callers          sync.WaitGroup
	charged, counted [limiters]int64 // each belongs to a caller, until that has returned
}

// calls has callers charge limits and count, until they are stopped or refused.
func (m *moving) calls() {
	m.t.Cleanup(m.rest)
	for i := range limiters {
		m.load.callers.Go(func() {
			o := m.old.ClientOptions()
			o.ReadTimeout = 2 * patience // writes wait while a server hands over
			c := redis.NewClient(o)
			defer c.Close() //nolint:errcheck // nothing is sent any more
			for ctx := m.t.Context(); !m.load.stop.Load(); m.load.counted[i]++ {
				if c.Do(ctx, "CL.THROTTLE", fmt.Sprint("cell:", i), charge).Err() != nil {
					return // it is a replica now
				}
				m.load.charged[i]++
				if c.Incr(ctx, fmt.Sprint("n:", i)).Err() != nil {
					return
				}
			}
		})
	}
	storetest.Await(m.t, "keys to be read", func() error {
		if n, _ := strconv.Atoi(m.info()["cell_attach_keys_read"]); n < 4*limiters {
			return fmt.Errorf("%d keys were read", n)
		}
		return nil
	})
}

// rest stops the callers.
func (m *moving) rest() {
	m.load.stop.Store(true)
	m.load.callers.Wait()
}

// hasAll requires that cellserver has all that callers were answered, and all else.
func (m *moving) hasAll() {
	m.t.Helper()
	for i, began := range m.began {
		tat, err := m.ours.Get(m.t.Context(), fmt.Sprint("cell:", i)).Int64()
		require.NoError(m.t, err)
		require.Equal(m.t, began+m.load.charged[i]*charge, tat, "the TAT of caller %d", i)
		n, err := m.ours.Get(m.t.Context(), fmt.Sprint("n:", i)).Int64()
		require.NoError(m.t, err)
		require.Equal(m.t, m.load.counted[i], n, "what caller %d has counted", i)
	}
	m.same()
}

// same requires that both servers have the same keys.
func (m *moving) same() {
	m.t.Helper()
	was := held(m.t, m.old.Client)
	require.Greater(m.t, len(was), 300)
	require.Equal(m.t, was, held(m.t, m.ours))
}

// reads are the commands that read a whole value, by type, without streams and the types that
// only cellserver has.
var reads = map[string][]any{
	"string": {"GET"}, "list": {"LRANGE", 0, -1}, "hash": {"HGETALL"}, "set": {"SMEMBERS"}, "zset": {"ZRANGE", 0, -1, "WITHSCORES"},
}

// held is what a server has: values, and when they end but for limiters, which live to their TAT
// in cellserver.
func held(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	ctx := t.Context()
	keys, err := c.Keys(ctx, "*").Result()
	require.NoError(t, err)
	all := map[string]string{}
	for _, k := range keys {
		read := reads[c.Type(ctx, k).Val()]
		if read == nil {
			continue
		}
		value, err := c.Do(ctx, append([]any{read[0], k}, read[1:]...)...).Result()
		require.NoError(t, err)
		all[k] = fmt.Sprint(value)
		if !strings.HasPrefix(k, "cell:") {
			all[k] += fmt.Sprint(" until ", c.PExpireTime(ctx, k).Val())
		}
	}
	return all
}

// info is INFO replication of cellserver.
func (m *moving) info() map[string]string {
	m.t.Helper()
	text, err := m.ours.Info(m.t.Context(), "replication").Result()
	require.NoError(m.t, err)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields
}

// TestMovingInTakesOverAndGoesBack does what the page says while callers go on: it looks, attaches
// at the start, takes over by FAILOVER, and goes back. No charge and no value is lost.
func TestMovingInTakesOverAndGoesBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		m := newMoving(t, e)
		require.Contains(t, m.do(m.steps.look), fmt.Sprint(len(m.old.Client.Keys(t.Context(), "*").Val()), " keys in 1 databases"))
		m.startAll(m.steps.start)
		m.sees(m.steps.watch)
		require.ErrorContains(t, m.ours.Set(t.Context(), "a", 1, 0).Err(), "READONLY")
		require.Equal(t, "stream=1", m.info()["cell_attach_skipped"])
		m.failoverNeedsThePassword()

		m.calls()
		m.do(m.steps.takeOver)
		m.load.callers.Wait() // they were refused
		m.sees(m.steps.roles)
		require.ErrorContains(t, m.old.Client.Set(t.Context(), "a", 1, 0).Err(), "READONLY")
		m.hasAll()
		m.do("ssh root@10.0.0.2 systemctl restart cellserver") // without --replicaof
		m.sees(m.steps.roles)
		m.hasAll()

		m.usesOurs()
		m.sees(m.steps.refused)
		require.Equal(t, "1\nOK\n", m.do(m.steps.back))
		m.same()
		require.NoError(t, m.old.Client.Set(t.Context(), "it is", "a primary", 0).Err())
	})
}

// failoverNeedsThePassword says FAILOVER without the line before it. Nothing changes.
func (m *moving) failoverNeedsThePassword() {
	m.t.Helper()
	login, rest, _ := strings.Cut(m.steps.takeOver, "\n")
	require.Contains(m.t, login, "CONFIG SET masterauth")
	failover, _, _ := strings.Cut(rest, "\n")
	m.do(failover)
	storetest.Await(m.t, "the attempt to end", func() error {
		if r := m.old.Info("replication"); r["master_failover_state"] != "no-failover" || r["role"] != "master" {
			return fmt.Errorf("the old server is a %s, and its failover is in the state %s", r["role"], r["master_failover_state"])
		}
		return nil
	})
	require.NoError(m.t, m.old.Client.Set(m.t.Context(), "it is still", "a primary", 0).Err())
	m.sees(m.steps.watch)
}

// usesOurs changes cellserver, also by a limiter that a Redis has no equal of.
func (m *moving) usesOurs() {
	m.t.Helper()
	ctx := m.t.Context()
	for i := range 10 {
		require.NoError(m.t, m.ours.Set(ctx, fmt.Sprint("new:", i), i, time.Hour).Err())
		require.NoError(m.t, m.ours.RPush(ctx, "l:1", i).Err())
		require.NoError(m.t, m.ours.Del(ctx, fmt.Sprint("s:", i)).Err())
		require.NoError(m.t, m.ours.Do(ctx, "CL.THROTTLE", fmt.Sprint("cell:new:", i), 15, 30, 3600).Err())
		require.NoError(m.t, m.ours.Do(ctx, "SW.ALLOW", fmt.Sprint("window:", i), 10, 3600).Err())
	}
}

// TestMovingInWithoutFailover attaches a cellserver that runs, as a user with the rights of the
// page, and ends with REPLICAOF NO ONE. The old server becomes a replica by REPLICAOF then.
func TestMovingInWithoutFailover(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		m := newMoving(t, e)
		require.Contains(t, m.steps.start, " --replicaof 10.0.0.1 6379 ")
		m.startAll(strings.Replace(m.steps.start, " --replicaof 10.0.0.1 6379 ", " ", 1))
		m.awaits(m.steps.password+"\nredis-cli -h 10.0.0.2 SET before 1", "OK")
		m.do(m.steps.user)
		m.do(m.steps.attach)
		m.sees(m.steps.watch)
		require.Zero(t, m.ours.Exists(t.Context(), "before").Val(), "it is replaced")

		other := inDatabase(t, m.old.Client, 1)
		require.NoError(t, other.Do(t.Context(), "CL.THROTTLE", "cell:other", charge).Err())
		m.calls()
		m.rest()
		require.Equal(t, "OK\n1\nOK\n", m.do(m.steps.withoutFailover))
		m.awaits(m.steps.password+"\nredis-cli -h 10.0.0.2 INFO replication", "role:master") // REPLICAOF replies before
		require.NoError(t, m.ours.Set(t.Context(), "it is", "a primary", 0).Err())
		require.NoError(t, m.old.Client.Set(t.Context(), "it is", "a primary", 0).Err())
		m.hasAll()
		require.Equal(t, strconv.Itoa(charge), inDatabase(t, m.ours, 1).Get(t.Context(), "cell:other").Val())
		refused, err := m.old.Client.Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		require.Empty(t, refused)

		m.do(m.steps.oldFollows)
		m.sees(m.steps.roles)
		m.usesOurs()
		require.Equal(t, "1\nOK\n", m.do(m.steps.back))
		m.same()
		m.requireFields()
	})
}

// inDatabase is another client of the same server.
func inDatabase(t *testing.T, c *redis.Client, db int) *redis.Client {
	t.Helper()
	o := *c.Options()
	o.DB = db
	other := redis.NewClient(&o)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// attachField is a row of the table of the page.
var attachField = regexp.MustCompile("(?m)^\\| `(cell_attach_[a-z_]+)` \\|")

// requireFields: the table has all fields about the old server, and INFO has no others.
func (m *moving) requireFields() {
	m.t.Helper()
	page, err := os.ReadFile(movingPage)
	require.NoError(m.t, err)
	var told, shown []string
	for _, row := range attachField.FindAllStringSubmatch(string(page), -1) {
		told = append(told, row[1])
	}
	for name := range m.info() {
		if strings.HasPrefix(name, "cell_attach_") {
			shown = append(shown, name)
		}
	}
	require.ElementsMatch(m.t, told, shown)
}
