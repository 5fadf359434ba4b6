package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
)

// redisNames are all names of options of Redis 7.2, older ones and the words of its
// configuration files included.
func redisNames(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("testdata/redis-7.2-options.txt")
	require.NoError(t, err)
	return strings.Fields(string(content))
}

// TestEveryOptionOfRedisIsKnown: each is honoured, taken as meaningless, or refused with a
// reason; none is unknown, and none is in two tables.
func TestEveryOptionOfRedisIsKnown(t *testing.T) {
	ours, idle, promised := server.OptionNames(), server.RedisOptionNames(), server.Promises()
	words := []string{"include", "loadmodule", "rename-command"}
	names := redisNames(t)
	require.Greater(t, len(names), 200)
	for _, name := range names {
		lists := 0
		for _, list := range [][]string{ours, idle, words} {
			if slices.Contains(list, name) {
				lists++
			}
		}
		if lists == 0 {
			require.Contains(t, promised, name, "an option of Redis that nobody has thought of")
		}
		require.LessOrEqual(t, lists, 1, "%s is in several tables: one that is honoured means something", name)
	}
	for _, name := range idle {
		require.Contains(t, names, name, "Redis has no such option")
	}
	all := values(server.DefaultConfig())
	for _, name := range promised {
		require.Contains(t, names, name)
		if v, shown := all[name]; shown { // what is shown is no promise, in a file either
			_, err := server.Load([]string{"--" + name + "=" + v}, nil)
			require.NoError(t, err, name)
		}
	}
}

// TestMeaninglessOptionsAreTakenWithOneWarning: from files, the environment and flags,
// all in one line of the log, and never with a value.
func TestMeaninglessOptionsAreTakenWithOneWarning(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	path := writeConfig(t, "hz 100\nslowlog-max-len 5\nHASH-MAX-ZIPLIST-VALUE 64\nmasterauth canary\nreplicaof no one\nloadmodule /usr/lib/redis/modules/libredis_cell.so limit 5\n")
	c, err := server.Load([]string{path, "--port", "0", "--unixsocket", "s", "--dir", dir, "--logfile", log, "--oom-score-adj-values", "0", "200", "800"}, []string{"CELLSERVER_ACTIVEDEFRAG=yes"})
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	run(t, s)()
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), "have no effect here"))
	require.Contains(t, string(content), `options="activedefrag hash-max-ziplist-value hz masterauth oom-score-adj-values replicaof slowlog-max-len"`)
	require.Contains(t, string(content), "redis-cell is built in")
	require.NotContains(t, string(content), "canary")
	require.Equal(t, "-1", value(t, c, "slowlog-log-slower-than"))
}

// TestUnsupportedOptionsAreRefused sets options that this server does not support. It
// does not start, and names the place and the reason, for a file, for flags and for
// CONFIG SET.
func TestUnsupportedOptionsAreRefused(t *testing.T) {
	for line, why := range map[string]string{
		"cluster-enabled yes":                `option "cluster-enabled": this server is not a node of a cluster`,
		"replicaof 10.0.0.1 6379":            `option "replicaof": this server has no replication`,
		"SLAVEOF 10.0.0.1 6379":              `option "SLAVEOF": this server has no replication`,
		"min-slaves-to-write 1":              `option "min-slaves-to-write": this server has no replication`,
		"tls-port 6380":                      `option "tls-port": this server has no TLS`,
		"aclfile /etc/redis/users.acl":       `option "aclfile": this server has one user`,
		"user alice on >canary ~* +@all":     `option "user": this server has one user`,
		"sentinel monitor m 127.0.0.1 1 2":   `option "sentinel": this server is not a sentinel`,
		"notify-keyspace-events KEA":         `option "notify-keyspace-events": this server sends no keyspace notifications`,
		"maxmemory-policy allkeys-lru":       `option "maxmemory-policy": argument must be noeviction`,
		"syslog-enabled yes":                 `option "syslog-enabled": this server writes to logfile`,
		"shutdown-on-sigterm nosave":         `option "shutdown-on-sigterm": a signal always stops`,
		"aof-load-truncated no":              `option "aof-load-truncated": the server always cuts the end of a log`,
		"loadmodule /opt/redisbloom.so":      `module "redisbloom.so": this server loads no modules; only redis-cell is built in`,
		"loadmodule /opt/redis_cell/json.so": `module "json.so": this server loads no modules`,
		"rename-command NOSUCH x":            `option "rename-command": no such command "NOSUCH"`,
		"rename-command GET SET":             `option "rename-command": there is a command "SET" already`,
		"rename-command GET":                 `option "rename-command" takes a command and its new name`,
		"hzz 10":                             `unknown option "hzz", did you mean "hz"?`,
		"apendonly yes":                      `unknown option "apendonly", did you mean "appendonly"?`,
		"maxmemroy 1gb":                      `unknown option "maxmemroy", did you mean "maxmemory"?`,
	} {
		path := writeConfig(t, "\n"+line+"\n")
		_, err := server.Load([]string{path}, nil)
		require.ErrorContains(t, err, path+":2: "+why)
		require.NotContains(t, err.Error(), "canary")
		words := strings.Fields(line)
		words[0] = "--" + words[0]
		_, err = server.Load(words, nil)
		require.ErrorContains(t, err, "command line: "+why)
	}
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
		"tls-port 6380":                       "'tls-port') - this server has no TLS: put a tunnel in front",
		"daemonize yes":                       "'daemonize') - can't set immutable config",
		"rdbchecksum no":                      "'rdbchecksum') - can't set immutable config",
		"hz 10 HZ 11":                         "'HZ') - duplicate parameter",
		"slave-priority 1 replica-priority 2": "'replica-priority') - duplicate parameter",
	} {
		require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument "+why+"\r\n", c.do(append([]string{"CONFIG", "SET", "timeout", "1"}, strings.Fields(args)...)...), args)
		require.Equal(t, array(bulk("timeout"), bulk("9")), c.do("CONFIG", "GET", "timeout"), args)
	}
}

// TestIncludes: relative to dir, by pattern, bounded, and with the place of a fault.
func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	write("conf.d/10.conf", "timeout 10\nmaxclients 10\n")
	write("conf.d/20.conf", "timeout 20\n")
	write("bad.conf", "\ntimeout x\n")
	write("self.conf", "include self.conf\n")
	write("a.conf", "include b.conf")
	write("b.conf", "include a.conf")
	for i := range 20 {
		write(fmt.Sprintf("deep%d.conf", i), fmt.Sprintf("include deep%d.conf\n", i+1))
	}
	load := func(content string) (*server.Config, error) {
		return server.Load([]string{write("main.conf", "dir "+dir+"\n"+content)}, nil)
	}
	c, err := load("timeout 5\ninclude conf.d/*.conf\ninclude nothing/*.conf\nport 7\n")
	require.NoError(t, err)
	require.Equal(t, "20", value(t, c, "timeout"))
	require.Equal(t, "10", value(t, c, "maxclients"))
	require.Equal(t, "7", value(t, c, "port"))
	c, err = load("include " + dir + "/conf.d/10.conf\ntimeout 6\n")
	require.NoError(t, err)
	require.Equal(t, "6", value(t, c, "timeout"))
	c, err = server.Load([]string{"--include", dir + "/conf.d/20.conf", "--maxclients", "3"}, nil)
	require.NoError(t, err)
	require.Equal(t, "20", value(t, c, "timeout"))

	for content, why := range map[string]string{
		"include bad.conf":          "bad.conf:2: option \"timeout\": argument couldn't be parsed into an integer",
		"include missing.conf":      "main.conf:2: open " + filepath.Join(dir, "missing.conf") + ": no such file or directory",
		"include self.conf":         "self.conf:1: " + filepath.Join(dir, "self.conf") + " includes itself",
		"include a.conf":            "b.conf:1: " + filepath.Join(dir, "a.conf") + " includes itself",
		"include deep0.conf":        "files include one another more than 16 deep",
		"include a.conf b.conf":     `main.conf:2: option "include" takes one value`,
		"include conf.d/[":          `main.conf:2: include "conf.d/[": syntax error in pattern`,
		"include /dev/zero":         "/dev/zero: longer than 16777216 bytes, so it is not a configuration",
		"include":                   `main.conf:2: option "include" lacks its value`,
		"include \"unbalanced.conf": "main.conf:2: unbalanced quotes",
	} {
		_, err := load(content)
		require.ErrorContains(t, err, why, content)
	}
}

// TestRepeatedDirectives: what Redis lets a file say in several lines adds up, and a
// flag replaces it.
func TestRepeatedDirectives(t *testing.T) {
	path := writeConfig(t, "save 900 1\nsave 300 10 60 0\nbind 127.0.0.1\nbind -::1 127.0.0.1\nclient-output-buffer-limit normal 0 0 0\nclient-output-buffer-limit replica 256mb 64mb 60\nclient-output-buffer-limit pubsub 1mb 1mb 7\nrename-command FLUSHALL \"\"\nrename-command CONFIG Conf\n")
	c, err := server.Load([]string{path}, nil)
	require.NoError(t, err)
	require.Equal(t, "900 1 300 10 60 0", value(t, c, "save"))
	require.Equal(t, "-::1 127.0.0.1", value(t, c, "bind"))
	require.Equal(t, "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 1048576 7", value(t, c, "client-output-buffer-limit"))
	c, err = server.Load([]string{path, "--save", "5", "5", "--save", "6", "6"}, nil)
	require.NoError(t, err)
	require.Equal(t, "5 5 6 6", value(t, c, "save"))
	c, err = server.Load([]string{writeConfig(t, "save 900 1\nsave \"\"\nsave 4 4\n")}, nil)
	require.NoError(t, err)
	require.Equal(t, "4 4", value(t, c, "save"))
}

// TestConfigurationFromStandardInput: a last argument "-" reads it, between the file and
// the flags.
func TestConfigurationFromStandardInput(t *testing.T) {
	path := writeConfig(t, "timeout 1\nmaxclients 1\nport 1\n")
	c, err := server.LoadFrom([]string{path, "--port", "3", "-"}, nil, strings.NewReader("timeout 2\nport 2\n"))
	require.NoError(t, err)
	got := values(c)
	require.Equal(t, []string{"2", "1", "3"}, []string{got["timeout"], got["maxclients"], got["port"]})
	_, err = server.LoadFrom([]string{"-"}, nil, strings.NewReader("\nport x\n"))
	require.ErrorContains(t, err, `standard input:2: option "port"`)
	_, err = server.Load([]string{"-"}, nil)
	require.ErrorContains(t, err, "standard input: there is none")
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
			require.EqualError(t, err, "Can't chdir to '"+dir+"': "+why)
		}
	}
	require.NoDirExists(t, filepath.Join(parent, "typo"))
}

// TestPathsAreRelativeToDir: as for Redis, which changes to it.
func TestPathsAreRelativeToDir(t *testing.T) {
	dir, err := os.MkdirTemp("", "cell") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := server.Load([]string{"--port", "0", "--unixsocket", "sock", "--dir", dir, "--logfile", "the.log"}, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{})
	require.NoError(t, err)
	stop := run(t, s)
	require.FileExists(t, filepath.Join(dir, "the.log"))
	_, err = os.Stat(filepath.Join(dir, "sock"))
	require.NoError(t, err)
	stop()
}
