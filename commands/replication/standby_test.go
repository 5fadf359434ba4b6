package replication_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestThePrimaryIsAClientOfItsReplica: as in Redis, CLIENT LIST shows the primary's connection,
// which does not count as a client. CLIENT KILL TYPE master makes the replica reconnect.
func TestThePrimaryIsAClientOfItsReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary, replica := w.Start(), w.Start("--max-clients-per-ip", "1", "--timeout", "2147483647")
		c := replica.Dial()
		require.Equal(t, "$0\r\n\r\n", c.Do("CLIENT", "LIST", "TYPE", "master"))
		host, port := primary.Host, strconv.Itoa(inproc.Port)
		require.Equal(t, "+OK\r\n", c.Do("REPLICAOF", host, port))
		is := func(field, value string) {
			t.Helper()
			w.Until(field+" is "+value, 3*time.Millisecond, time.Minute, func() bool { return c.Info(field) == value })
		}
		is("master_link_status", "up")
		line := c.Do("CLIENT", "LIST", "TYPE", "master")
		require.Equal(t, []string{primary.Addr(), "M", "(superuser)", "NULL"}, []string{inproc.Field(line, "addr"), inproc.Field(line, "flags"), inproc.Field(line, "user"), inproc.Field(line, "cmd")})
		require.Equal(t, 1, strings.Count(line, "addr="+primary.Addr()))
		require.NotContains(t, c.Do("CLIENT", "LIST", "TYPE", "normal"), "flags=M")
		require.Contains(t, c.Do("CLIENT", "LIST"), "flags=M")
		_, id, _ := strings.Cut(line, "id=")
		id, _, _ = strings.Cut(id, " ")
		require.Equal(t, ":0\r\n", c.Do("CLIENT", "UNBLOCK", id))
		require.Equal(t, ":0\r\n", c.Do("CLIENT", "KILL", "TYPE", "normal"))
		require.Equal(t, ":0\r\n", c.Do("CLIENT", "KILL", "USER", "default"))
		require.Contains(t, c.Do("CLIENT", "LIST", "TYPE", "primary"), "id="+id+" ", "nothing of that has closed it")
		require.Equal(t, ":1\r\n", c.Do("CLIENT", "KILL", "TYPE", "master"))
		w.Until("another link", 3*time.Millisecond, time.Minute, func() bool {
			line := c.Do("CLIENT", "LIST", "TYPE", "master")
			return strings.Contains(line, "flags=M") && !strings.Contains(line, "id="+id+" ")
		})
		is("master_link_status", "up")
		require.Equal(t, "+OK\r\n", c.Do("REPLICAOF", "NO", "ONE"))
		is("role", "master")
		require.Equal(t, "$0\r\n\r\n", c.Do("CLIENT", "LIST", "TYPE", "master"), "no link")

		require.Equal(t, "+OK\r\n", c.Do("REPLICAOF", host, port))
		is("master_link_status", "up")
		clients := func() int { return len(replica.Engine().Clients()) }
		require.Equal(t, 2, clients())
		replica.Engine().CloseOverdue(limit.MaxInstant)
		w.Settle()
		require.Equal(t, 1, clients(), "only the other client was idle for too long")
		require.True(t, replica.Engine().Clients()[0].Primary)
	})
}

// TestNothingIsLostOverCutsAndHandovers has clients count on three servers while links are cut,
// the primary fails over and replicas change their primary. No acknowledged call may be lost or
// run twice, and all servers must end up with the same state.
func TestNothingIsLostOverCutsAndHandovers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		all := []*inproc.Node{w.Start(), w.Start(), w.Start()}
		all[1].Follow(all[0])
		all[2].Follow(all[0])
		load := count(w, 6, all[0], all[1:]...)
		rng := rand.New(rand.NewPCG(1, 2))
		handovers := 0
		for range 16 {
			primary := load.primary.Load()
			others := slices.DeleteFunc(slices.Clone(all), func(f *inproc.Node) bool { return f == primary })
			next := others[rng.IntN(2)]
			switch rng.IntN(3) {
			case 0:
				c := primary.Dial()
				c.Do("CLIENT", "KILL", "TYPE", "replica") // also connections that the replica has already closed
			case 1:
				others[1].Follow(others[0])
				others[1].Follow(primary)
			default:
				primary.HandOver(next)
				load.primary.Store(next)
				for _, f := range others {
					if f != next {
						f.Follow(next)
					}
				}
				primary.AwaitLink(next)
				handovers++
			}
			w.Advance(time.Duration(rng.IntN(30)) * time.Millisecond)
			for _, f := range all {
				if f != load.primary.Load() {
					f.AwaitLink(load.primary.Load())
				}
			}
		}
		load.end()
		primary := load.primary.Load()
		primary.Agree(slices.DeleteFunc(slices.Clone(all), func(f *inproc.Node) bool { return f == primary })...)
		acked, unknown := load.check(t, primary)
		t.Logf("%d handovers: %d calls acknowledged, %d failed, none lost", handovers, acked, unknown)
		require.Positive(t, acked)
		require.Positive(t, handovers)
	})
}

// TestAReservationIsNotGivenBackOnAReplica: a call that waits for tokens when the primary fails
// over gets an error, and the charge stays on both servers. A call whose client disconnects
// during the pause is refunded only if the failover is aborted.
func TestAReservationIsNotGivenBackOnAReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start(), w.Start()
		b.Follow(a)
		reserve := func(f *inproc.Node, key string) *inproc.Client {
			t.Helper()
			c := f.Dial()
			require.Contains(t, c.Do("TB.ACQUIRE", key, "10", "1", "3600", "10"), "*5\r\n:0\r\n")
			c.Command("TB.ACQUIRE", key, "10", "1", "3600", "5", "BLOCK", "86400")
			w.Settle()
			require.NotEqual(t, "0", f.Dial().Info("blocked_clients"))
			return c
		}
		waits := reserve(a, "k")
		a.HandOver(b)
		require.Contains(t, waits.Reply(), "-UNBLOCKED")
		a.AwaitLink(b)
		b.Agree(a)

		gone := reserve(b, "gone")
		b.Engine().PauseHandover()
		require.NoError(t, gone.Close())
		w.Settle()
		require.Equal(t, "0", b.Dial().Info("blocked_clients"), "it is gone")
		charged := b.State()["0/gone"]
		w.Until("the replica has the charge", 3*time.Millisecond, time.Minute, func() bool { return reflect.DeepEqual(charged, a.State()["0/gone"]) })
		b.Engine().EndHandover()
		w.Settle()
		require.NotEqual(t, charged, b.State()["0/gone"], "it is given back")
		w.Until("it is given back on the replica", 3*time.Millisecond, time.Minute, func() bool {
			return reflect.DeepEqual(b.State()["0/gone"], a.State()["0/gone"])
		})
	})
}

// TestRepliesWaitForReplicas: with repl-ack-replies a reply leaves once a replica has the effect,
// and becomes an error after repl-ack-timeout. Replies to reads do not wait.
func TestRepliesWaitForReplicas(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start("--repl-ack-timeout", "200", "--repl-ack-replies", "1")
		c := primary.Dial()
		require.Equal(t, "-NOREPLICAS Not enough replicas have acknowledged the write in time; it stands on this server\r\n", c.Do("INCR", "n"))
		require.Equal(t, inproc.Bulk("1"), c.Do("GET", "n"))

		replica := w.Start()
		replica.Follow(primary)
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "repl-ack-timeout", "60000")) // long enough for the test
		r := replica.Dial()
		for i := range 100 {
			require.Equal(t, ":"+strconv.Itoa(i+2)+"\r\n", c.Do("INCR", "n"))
			require.Equal(t, inproc.Bulk(strconv.Itoa(i+2)), r.Do("GET", "n"), "the replica had it before")
		}
		require.Equal(t, ":1\r\n", c.Do("WAIT", "1", "0"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "repl-ack-replies", "2", "repl-ack-timeout", "200"))
		require.Contains(t, c.Do("CL.THROTTLE", "limit", "15", "30", "60"), "-NOREPLICAS")
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "repl-ack-replies", "0"))
		require.Equal(t, ":102\r\n", c.Do("INCR", "n"))
	})
}
