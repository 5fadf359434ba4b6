package server_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
)

// TestThePrimaryIsAClientOfItsReplica: as in Redis CLIENT LIST shows the connection, which takes no
// client's place, and CLIENT KILL TYPE master has the replica connect again.
func TestThePrimaryIsAClientOfItsReplica(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		primary, replica := startStandby(t, kind), startStandby(t, kind, "--max-clients-per-ip", "1", "--timeout", "2147483647")
		c := replica.dial()
		require.Equal(t, "$0\r\n\r\n", c.do("CLIENT", "LIST", "TYPE", "master"))
		host, port := primary.place()
		require.Equal(t, "+OK\r\n", c.do("REPLICAOF", host, port))
		up := func() bool { return strings.Contains(c.do("INFO", "replication"), "master_link_status:up") }
		eventually(t, "the link is up", up)
		line := c.do("CLIENT", "LIST", "TYPE", "master")
		require.Equal(t, []string{primary.addr, "M", "(superuser)", "NULL"}, []string{field(line, "addr"), field(line, "flags"), field(line, "user"), field(line, "cmd")})
		require.Equal(t, 1, strings.Count(line, "addr="+primary.addr))
		require.NotContains(t, c.do("CLIENT", "LIST", "TYPE", "normal"), "flags=M")
		require.Contains(t, c.do("CLIENT", "LIST"), "flags=M")
		_, id, _ := strings.Cut(line, "id=")
		id, _, _ = strings.Cut(id, " ")
		require.Equal(t, ":0\r\n", c.do("CLIENT", "UNBLOCK", id))
		require.Equal(t, ":0\r\n", c.do("CLIENT", "KILL", "TYPE", "normal"))
		require.Equal(t, ":0\r\n", c.do("CLIENT", "KILL", "USER", "default"))
		require.Contains(t, c.do("CLIENT", "LIST", "TYPE", "primary"), "id="+id+" ", "nothing of that has closed it")
		require.Equal(t, ":1\r\n", c.do("CLIENT", "KILL", "TYPE", "master"))
		eventually(t, "another link", func() bool {
			line := c.do("CLIENT", "LIST", "TYPE", "master")
			return strings.Contains(line, "flags=M") && !strings.Contains(line, "id="+id+" ")
		})
		eventually(t, "the link is up again", up)
		require.Equal(t, "+OK\r\n", c.do("REPLICAOF", "NO", "ONE"))
		eventually(t, "a primary", func() bool { return strings.Contains(c.do("INFO", "replication"), "role:master") })
		eventually(t, "no link", func() bool { return c.do("CLIENT", "LIST", "TYPE", "master") == "$0\r\n\r\n" })

		require.Equal(t, "+OK\r\n", c.do("REPLICAOF", host, port))
		eventually(t, "the link is up once more", up)
		clients := func() int { return len(replica.Engine().Clients()) }
		require.Equal(t, 2, clients())
		replica.Engine().CloseOverdue(limit.MaxInstant)
		eventually(t, "only the other client was idle for too long", func() bool { return clients() == 1 })
		require.True(t, replica.Engine().Clients()[0].Primary)
	})
}

// TestNothingIsLostOverCutsAndHandovers has clients count on three servers while links are cut,
// the primary hands over and the replicas follow one another: no acknowledged call is lost or runs
// twice, and all servers end up with the same state.
func TestNothingIsLostOverCutsAndHandovers(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		all := []*fixture{startStandby(t, kind), startStandby(t, kind), startStandby(t, kind)}
		all[1].follows(all[0])
		all[2].follows(all[0])
		load := count(t, 6, all[0])
		rng := rand.New(rand.NewPCG(1, 2))
		handovers := 0
		for range 8 {
			primary := load.primary.Load()
			others := slices.DeleteFunc(slices.Clone(all), func(f *fixture) bool { return f == primary })
			next := others[rng.IntN(2)]
			switch rng.IntN(3) {
			case 0:
				c := primary.dial()
				c.do("CLIENT", "KILL", "TYPE", "replica") // also those whose replica has given them up already
			case 1:
				others[1].follows(others[0])
				others[1].follows(primary)
			default:
				handOver(t, primary, next)
				load.primary.Store(next)
				for _, f := range others {
					if f != next {
						f.follows(next)
					}
				}
				primary.awaitLink(next)
				handovers++
			}
			for _, f := range all {
				if f != load.primary.Load() {
					f.awaitLink(load.primary.Load())
				}
			}
		}
		load.end()
		primary := load.primary.Load()
		agree(t, primary, slices.DeleteFunc(slices.Clone(all), func(f *fixture) bool { return f == primary })...)
		acked, unknown := load.check(t, primary)
		t.Logf("%d handovers: %d calls acknowledged, %d failed, none lost", handovers, acked, unknown)
		require.Positive(t, acked)
		require.Positive(t, handovers)
	})
}

// handOver has primary hand over to next.
func handOver(t testing.TB, primary, next *fixture) {
	t.Helper()
	host, port := next.place()
	c := primary.dial()
	eventually(t, "the target is a replica", func() bool { // one whose link was cut has yet to come back
		return c.do("FAILOVER", "TO", host, port, "TIMEOUT", "30000") == "+OK\r\n"
	})
	eventually(t, "the roles have changed", func() bool {
		return strings.HasPrefix(next.dial().do("ROLE"), "*3\r\n$6\r\nmaster") && primary.replication()["master_failover_state"] == "no-failover"
	})
}

// TestAReservationIsNotGivenBackOnAReplica: who waits for tokens when the primary hands over is told
// so, and the charge stands on both servers. One whose client goes during the pause is given back
// only if the handover is given up.
func TestAReservationIsNotGivenBackOnAReplica(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		a, b := startStandby(t, kind), startStandby(t, kind)
		b.follows(a)
		reserve := func(f *fixture, key string) *client {
			t.Helper()
			c := f.dial()
			require.Contains(t, c.do("TB.ACQUIRE", key, "10", "1", "3600", "10"), "*5\r\n:0\r\n")
			c.command("TB.ACQUIRE", key, "10", "1", "3600", "5", "BLOCK", "86400")
			eventually(t, "it waits", func() bool { return f.dial().info("blocked_clients") != "0" })
			return c
		}
		waits := reserve(a, "k")
		handOver(t, a, b)
		require.Contains(t, waits.reply(), "-UNBLOCKED")
		a.awaitLink(b)
		agree(t, b, a)

		gone := reserve(b, "gone")
		b.Engine().PauseHandover()
		require.NoError(t, gone.Close())
		eventually(t, "it is gone", func() bool { return b.dial().info("blocked_clients") == "0" })
		charged := b.state()["0/gone"]
		eventually(t, "the replica has the charge", func() bool { return a.state()["0/gone"] == charged })
		b.Engine().EndHandover()
		eventually(t, "it is given back", func() bool { return b.state()["0/gone"] != charged })
		eventually(t, "on the replica, too", func() bool { return a.state()["0/gone"] == b.state()["0/gone"] })
	})
}

// TestRepliesWaitForReplicas: with repl-ack-replies a reply leaves once a replica has its effect,
// and becomes an error after repl-ack-timeout. What only reads does not wait.
func TestRepliesWaitForReplicas(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		primary := startStandby(t, kind, "--repl-ack-timeout", "200", "--repl-ack-replies", "1")
		c := primary.dial()
		require.Equal(t, "-NOREPLICAS Not enough replicas have acknowledged the write in time; it stands on this server\r\n", c.do("INCR", "n"))
		require.Equal(t, bulk("1"), c.do("GET", "n"))

		replica := startStandby(t, kind)
		replica.follows(primary)
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "repl-ack-timeout", "60000")) // it may take its time
		r := replica.dial()
		for i := range 100 {
			require.Equal(t, ":"+strconv.Itoa(i+2)+"\r\n", c.do("INCR", "n"))
			require.Equal(t, bulk(strconv.Itoa(i+2)), r.do("GET", "n"), "the replica had it before")
		}
		require.Equal(t, ":1\r\n", c.do("WAIT", "1", "0"))
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "repl-ack-replies", "2", "repl-ack-timeout", "200"))
		require.Contains(t, c.do("CL.THROTTLE", "limit", "15", "30", "60"), "-NOREPLICAS")
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "repl-ack-replies", "0"))
		require.Equal(t, ":102\r\n", c.do("INCR", "n"))
	})
}
