package admin_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestConfigSet: which options can be changed at runtime, that a change is all or nothing, and
// what it affects.
func TestConfigSet(t *testing.T) {
	immutable := []string{"bind", "unixsocket", "unixsocketperm", "dir", "logfile", "databases", "transport", "io-threads", "tcp-backlog", "save", "appendonly"}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for _, name := range immutable {
			want := "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - can't set immutable config\r\n"
			require.Equal(t, want, c.Do("CONFIG", "SET", name, "1"))
			require.Equal(t, want, c.Do("CONFIG", "SET", "timeout", "77", name, "1"))
		}
		for _, same := range []string{"appendonly", "save", "databases"} {
			value := strings.Split(c.Do("CONFIG", "GET", same), "\r\n")[4]
			require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", same, value), "it is so already")
		}
		for args, want := range map[string]string{
			"timeout 77 nosuch 1":     "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n",
			"timeout 77 maxclients 0": "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 1048576 inclusive\r\n",
			"timeout 77 maxmemory-policy allkeys-lru": "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument must be noeviction: " +
				"this server evicts no key, since that would reset a limit\r\n",
			"timeout 77 timeout 78": "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter\r\n",
			"timeout 77 TIMEOUT 78": "-ERR CONFIG SET failed (possibly related to argument 'TIMEOUT') - duplicate parameter\r\n",
			"timeout 77 maxclients": "-ERR syntax error\r\n",
			"timeout":               "-ERR wrong number of arguments for 'config|set' command\r\n",
		} {
			require.Equal(t, want, c.Do(append([]string{"CONFIG", "SET"}, strings.Fields(args)...)...), args)
			require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("0")), c.Do("CONFIG", "GET", "timeout"), args)
		}
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "Timeout", "5", "sw-log-max-entries", "10", "maxmemory", "1mb", "maxmemory-policy", "noeviction"))
		require.Equal(t, inproc.Array(inproc.Bulk("TIMEOUT"), inproc.Bulk("5")), c.Do("CONFIG", "GET", "TIMEOUT"))
		require.Equal(t, "1048576", c.Info("maxmemory"))
		require.Equal(t, "-ERR limit exceeds sw-log-max-entries\r\n", c.Do("SW.ALLOW", "k", "11", "60", "1", "LOG"))
		require.Equal(t, "*0\r\n", c.Do("CONFIG", "GET", "nosuch"))
		require.Equal(t, inproc.Array(inproc.Bulk("databases"), inproc.Bulk("16"), inproc.Bulk("timeout"), inproc.Bulk("5")), c.Do("CONFIG", "GET", "d*s", "timeout", "t?meout"))
		require.Equal(t, "-ERR pattern is too long, at most 1024 bytes\r\n", c.Do("CONFIG", "GET", strings.Repeat("*", 1025)))
	})
}

// TestConfigSetRace: of many concurrent changes the last one is in force.
func TestConfigSetRace(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		var all sync.WaitGroup
		for i := range 8 {
			c := f.Dial()
			all.Go(func() {
				for n := range 50 {
					c.Command("CONFIG", "SET", []string{"timeout", "maxclients"}[i%2], []string{"100", "200"}[n%2])
					c.Expect("+OK\r\n")
				}
			})
		}
		all.Wait()
		c := f.Dial()
		limits := f.Engine().Limits()
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("200")), c.Do("CONFIG", "GET", "timeout"))
		require.Equal(t, 200*time.Second, limits.Idle)
		require.Equal(t, 200, limits.MaxClients)
	})
}
