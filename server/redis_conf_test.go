package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// TestMeaninglessOptionsAreTakenWithOneWarning: from files, the environment and flags,
// all in one line of the log, and never with a value.
func TestMeaninglessOptionsAreTakenWithOneWarning(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	path := writeConfig(t, "hz 100\nHASH-MAX-ZIPLIST-VALUE 64\nmasterauth canary\nreplicaof no one\nloadmodule /usr/lib/redis/modules/libredis_cell.so limit 5\n")
	c, err := config.Load([]string{path, "--port", "0", "--unixsocket", "s", "--dir", dir, "--logfile", log, "--oom-score-adj-values", "0", "200", "800"}, []string{"CELLSERVER_ACTIVEDEFRAG=yes"})
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	run(t, s)()
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), "have no effect here"))
	require.Contains(t, string(content), `options="activedefrag hash-max-ziplist-value hz oom-score-adj-values"`)
	require.Contains(t, string(content), "redis-cell is built in")
	require.NotContains(t, string(content), "canary")
}

// TestConfigSetOfMeaninglessOptions: programs that tune Redis when they start go on, and
// nothing changes; what asks for more than this server does fails with the reason.
func TestConfigSetOfMeaninglessOptions(t *testing.T) {
	c := start(t, "goroutine").dial()
	require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "hash-max-listpack-entries", "4", "Slowlog-Max-Len", "7", "timeout", "9"))
	require.Equal(t, array(bulk("hash-max-listpack-entries"), bulk("512")), c.do("CONFIG", "GET", "hash-max-listpack-entries"))
	require.Equal(t, array(bulk("timeout"), bulk("9")), c.do("CONFIG", "GET", "timeout"))
	require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "notify-keyspace-events", ""))
	for args, why := range map[string]string{
		"notify-keyspace-events Ex":           "'notify-keyspace-events') - this server sends no keyspace notifications",
		"tls-port 6380":                       "'tls-port') - no tls-cert-file configured either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled",
		"replica-read-only no":                "'replica-read-only') - a replica has the state of its primary and takes no writes",
		"daemonize yes":                       "'daemonize') - can't set immutable config",
		"rdbchecksum no":                      "'rdbchecksum') - can't set immutable config",
		"hz 10 HZ 11":                         "'HZ') - duplicate parameter",
		"slave-priority 1 replica-priority 2": "'replica-priority') - duplicate parameter",
	} {
		require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument "+why+"\r\n", c.do(append([]string{"CONFIG", "SET", "timeout", "1"}, strings.Fields(args)...)...), args)
		require.Equal(t, array(bulk("timeout"), bulk("9")), c.do("CONFIG", "GET", "timeout"), args)
	}
}

// TestRenamedCommands: rename-command gives a command another name, in scripts too, or
// none at all.
func TestRenamedCommands(t *testing.T) {
	c := start(t, "goroutine", "--rename-command", "FLUSHALL", "", "--rename-command", "CONFIG", "b840fc02d524045429941cc15f59e41cb7be6c52", "--rename-command", "get", "Fetch").dial()
	require.Contains(t, c.do("FLUSHALL"), "-ERR unknown command 'FLUSHALL'")
	require.Contains(t, c.do("CONFIG", "GET", "port"), "-ERR unknown command 'CONFIG'")
	require.Equal(t, array(bulk("timeout"), bulk("0")), c.do("B840fc02d524045429941cc15f59e41cb7be6c52", "GET", "timeout"))
	require.Equal(t, "+OK\r\n", c.do("SET", "k", "v"))
	require.Equal(t, "$1\r\nv\r\n", c.do("fetch", "k"))
	require.Equal(t, "$1\r\nv\r\n", c.do("EVAL", "return redis.call('FETCH',KEYS[1])", "1", "k"))
	require.Contains(t, c.do("EVAL", "return redis.call('GET',KEYS[1])", "1", "k"), "Unknown Redis command called from script")
	require.Equal(t, array("$-1\r\n"), c.do("COMMAND", "INFO", "flushall"))
}

// TestDirectoryThatIsNotThereStopsTheServer: as Redis stops, with and without
// appendonly, and nothing is made.
func TestDirectoryThatIsNotThereStopsTheServer(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for dir, why := range map[string]string{
		filepath.Join(parent, "typo"): "No such file or directory", file: "Not a directory", "": "No such file or directory",
	} {
		for _, appendonly := range []string{"no", "yes"} {
			_, err := newServer(t, "--port", "0", "--unixsocket", filepath.Join(parent, "s"), "--dir", dir, "--appendonly", appendonly)
			require.EqualError(t, err, "command line: Can't chdir to '"+dir+"': "+why)
		}
	}
	require.NoDirExists(t, filepath.Join(parent, "typo"))
}

// TestPathsAreRelativeToDir: as for Redis, which changes to it.
func TestPathsAreRelativeToDir(t *testing.T) {
	dir, err := os.MkdirTemp("", "cell") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := config.Load([]string{"--port", "0", "--unixsocket", "sock", "--dir", dir, "--logfile", "the.log"}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	stop := run(t, s)
	require.FileExists(t, filepath.Join(dir, "the.log"))
	_, err = os.Stat(filepath.Join(dir, "sock"))
	require.NoError(t, err)
	stop()
}
