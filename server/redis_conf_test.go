package server_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// serving runs a server that opens its own listeners until stop is called.
func serving(t *testing.T, s *server.Server) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	return func() {
		s.Stop()
		require.NoError(t, <-done)
	}
}

// newError returns the error of New with these options.
func newError(t *testing.T, flags ...string) error {
	t.Helper()
	c, err := config.Load(flags, nil)
	require.NoError(t, err)
	_, err = server.New(c, server.Options{Log: slog.New(slog.DiscardHandler)})
	return err
}

// TestMeaninglessOptionsAreTakenWithOneWarning: options from files, the environment and flags are
// named in one line of the log, without their values.
func TestMeaninglessOptionsAreTakenWithOneWarning(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	path := writeConfig(t, "hz 100\nHASH-MAX-ZIPLIST-VALUE 64\nmasterauth canary\nreplicaof no one\nloadmodule /usr/lib/redis/modules/libredis_cell.so limit 5\n")
	c, err := config.Load([]string{path, "--port", "0", "--unixsocket", "s", "--dir", dir, "--logfile", log, "--oom-score-adj-values", "0", "200", "800"}, []string{"CELLSERVER_ACTIVEDEFRAG=yes"})
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	serving(t, s)()
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), "have no effect here"))
	require.Contains(t, string(content), `options="activedefrag hash-max-ziplist-value hz oom-score-adj-values"`)
	require.Contains(t, string(content), "redis-cell is built in")
	require.NotContains(t, string(content), "canary")
}

// TestConfigSetOfMeaninglessOptions: programs that tune Redis at their start continue to work, and
// nothing changes. An option that would need a feature which this server lacks fails with the
// reason.
func TestConfigSetOfMeaninglessOptions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "hash-max-listpack-entries", "4", "Slowlog-Max-Len", "7", "timeout", "9"))
		require.Equal(t, inproc.Array(inproc.Bulk("hash-max-listpack-entries"), inproc.Bulk("512")), c.Do("CONFIG", "GET", "hash-max-listpack-entries"))
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("9")), c.Do("CONFIG", "GET", "timeout"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "notify-keyspace-events", ""))
		for args, why := range map[string]string{
			"notify-keyspace-events Ex":           "'notify-keyspace-events') - this server sends no keyspace notifications",
			"tls-port 6380":                       "'tls-port') - no tls-cert-file configured either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled",
			"replica-read-only no":                "'replica-read-only') - a replica has the state of its primary and takes no writes",
			"daemonize yes":                       "'daemonize') - can't set immutable config",
			"rdbchecksum no":                      "'rdbchecksum') - can't set immutable config",
			"hz 10 HZ 11":                         "'HZ') - duplicate parameter",
			"slave-priority 1 replica-priority 2": "'replica-priority') - duplicate parameter",
		} {
			require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument "+why+"\r\n", c.Do(append([]string{"CONFIG", "SET", "timeout", "1"}, strings.Fields(args)...)...), args)
			require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("9")), c.Do("CONFIG", "GET", "timeout"), args)
		}
	})
}

// TestRenamedCommands: rename-command gives a command another name, in scripts, too, or removes it.
func TestRenamedCommands(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--rename-command", "FLUSHALL", "", "--rename-command", "CONFIG", "b840fc02d524045429941cc15f59e41cb7be6c52", "--rename-command", "get", "Fetch").Dial()
		require.Contains(t, c.Do("FLUSHALL"), "-ERR unknown command 'FLUSHALL'")
		require.Contains(t, c.Do("CONFIG", "GET", "port"), "-ERR unknown command 'CONFIG'")
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("0")), c.Do("B840fc02d524045429941cc15f59e41cb7be6c52", "GET", "timeout"))
		require.Equal(t, "+OK\r\n", c.Do("SET", "k", "v"))
		require.Equal(t, "$1\r\nv\r\n", c.Do("fetch", "k"))
		require.Equal(t, "$1\r\nv\r\n", c.Do("EVAL", "return redis.call('FETCH',KEYS[1])", "1", "k"))
		require.Contains(t, c.Do("EVAL", "return redis.call('GET',KEYS[1])", "1", "k"), "Unknown Redis command called from script")
		require.Equal(t, inproc.Array("$-1\r\n"), c.Do("COMMAND", "INFO", "flushall"))
	})
}

// TestDirectoryThatIsNotThereStopsTheServer: as in Redis, with and without appendonly, and no file
// is created.
func TestDirectoryThatIsNotThereStopsTheServer(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for dir, why := range map[string]string{
		filepath.Join(parent, "typo"): "No such file or directory", file: "Not a directory", "": "No such file or directory",
	} {
		for _, appendonly := range []string{"no", "yes"} {
			err := newError(t, "--port", "0", "--unixsocket", filepath.Join(parent, "s"), "--dir", dir, "--appendonly", appendonly)
			require.EqualError(t, err, "command line: Can't chdir to '"+dir+"': "+why)
		}
	}
	require.NoDirExists(t, filepath.Join(parent, "typo"))
}

// TestPathsAreRelativeToDir: as in Redis, which changes its directory.
func TestPathsAreRelativeToDir(t *testing.T) {
	dir, err := os.MkdirTemp("", "cell") // short enough for the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := config.Load([]string{"--port", "0", "--unixsocket", "sock", "--dir", dir, "--logfile", "the.log"}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	stop := serving(t, s)
	require.FileExists(t, filepath.Join(dir, "the.log"))
	_, err = os.Stat(filepath.Join(dir, "sock"))
	require.NoError(t, err)
	stop()
}
