package server_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/freeport"
)

// startIn starts a server with a log in dir, at an address of its own or at that of a former one.
func startIn(t testing.TB, kind, dir, addr string, flags ...string) *fixture {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--dir", dir, "--appendonly", "yes"}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, nil, func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// syncs are how often a server has sent everything, and how often only what was missing.
func (f *fixture) syncs() [2]int64 {
	counts := f.Engine().Options.Node.Counts()
	return [2]int64{counts.SyncFull, counts.SyncPartialOK}
}

// TestRestartedReplicaAsksForWhatItMissed: a replica that is started again with the same primary is
// sent what it has missed. One that was a primary in between is sent everything.
func TestRestartedReplicaAsksForWhatItMissed(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		primary, dir := startStandby(t, kind), t.TempDir()
		host, port := primary.place()
		follow := []string{"--replicaof", host + " " + port}
		c := primary.dial()
		fields := []string{"HSET", "h"}
		for i := range 1000 { // so many that PERSIST replicates none of them
			fields = append(fields, strconv.Itoa(i), "v")
		}
		c.do(fields...)
		require.Equal(t, ":1\r\n", c.do("PEXPIRE", "h", "1000"))
		expires := time.Now().Add(time.Second)

		replica := startIn(t, kind, dir, net.JoinHostPort("127.0.0.1", freeport.Choose()), follow...)
		replica.awaitLink(primary)
		eventually(t, "the files have the state", func() bool { return strings.Contains(replica.log.String(), "snapshot written") })
		replica.end()
		require.Equal(t, [2]int64{1, 0}, primary.syncs())
		c.do("PERSIST", "h") // before it has expired, unless the machine is slow
		eventually(t, "it would have expired", func() bool { return time.Now().After(expires) })
		require.Contains(t, c.do("CL.THROTTLE", "limit", "15", "30", "60"), ":0\r\n:16\r\n:15\r\n")

		replica = startIn(t, kind, dir, replica.addr, "--replicaof", "127.0.0.1 1") // where nobody listens
		replica.Keyspace().Sweep(1000)
		replica.follows(primary)
		agree(t, primary, replica)
		require.Equal(t, [2]int64{1, 1}, primary.syncs())
		replica.end()

		alone := startIn(t, kind, dir, replica.addr)
		require.Equal(t, "+OK\r\n", alone.dial().do("SET", "own", "v"))
		alone.end()
		replica = startIn(t, kind, dir, replica.addr, follow...)
		replica.awaitLink(primary)
		agree(t, primary, replica)
		require.Equal(t, [2]int64{2, 1}, primary.syncs())
	})
}
