package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/config"
	"github.com/stretchr/testify/require"
)

// redisNames returns all names of options of Redis 7.2, with older names and the words of its
// configuration files.
func redisNames(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("testdata/redis-7.2-options.txt")
	require.NoError(t, err)
	return strings.Fields(string(content))
}

// TestEveryOptionOfRedisIsKnown: each option is supported, accepted without effect, or refused
// with a reason. None is unknown, and none is in two tables.
func TestEveryOptionOfRedisIsKnown(t *testing.T) {
	ours, idle, promised := config.OptionNames(), config.RedisOptionNames(), config.Promises()
	words := []string{"include", "loadmodule", "rename-command", "user"}
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
	all := values(config.Default())
	for _, name := range promised {
		require.Contains(t, names, name)
		if v, shown := all[name]; shown { // what is shown is no promise, in a file either
			_, err := config.Load([]string{"--" + name + "=" + v}, nil)
			require.NoError(t, err, name)
		}
	}
}

// TestUnsupportedOptionsAreRefused sets options that this server does not support. It
// does not start, and names the place and the reason, for a file, for flags and for
// CONFIG SET.
func TestUnsupportedOptionsAreRefused(t *testing.T) {
	for line, why := range map[string]string{
		"cluster-enabled yes":                `option "cluster-enabled": this server is not a node of a cluster`,
		"replicaof canary":                   `option "replicaof": argument must be a host and a port`,
		"SLAVEOF canary 65536":               `option "SLAVEOF": Invalid master port`,
		"slave-read-only no":                 `option "slave-read-only": a replica has the state of its primary`,
		"tls-protocols TLSv1.1":              `option "tls-protocols": tls-protocols: TLSv1.1 is not secure`,
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
		_, err := config.Load([]string{path}, nil)
		require.ErrorContains(t, err, path+":2: "+why)
		require.NotContains(t, err.Error(), "canary")
		words := strings.Fields(line)
		words[0] = "--" + words[0]
		_, err = config.Load(words, nil)
		require.ErrorContains(t, err, "command line: "+why)
	}
}

// TestIncludes: included paths are relative to dir, may be patterns, are bounded, and appear in
// the place of a fault.
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
	load := func(content string) (*config.Config, error) {
		return config.Load([]string{write("main.conf", "dir "+dir+"\n"+content)}, nil)
	}
	c, err := load("timeout 5\ninclude conf.d/*.conf\ninclude nothing/*.conf\nport 7\n")
	require.NoError(t, err)
	require.Equal(t, "20", value(t, c, "timeout"))
	require.Equal(t, "10", value(t, c, "maxclients"))
	require.Equal(t, "7", value(t, c, "port"))
	c, err = load("include " + dir + "/conf.d/10.conf\ntimeout 6\n")
	require.NoError(t, err)
	require.Equal(t, "6", value(t, c, "timeout"))
	c, err = config.Load([]string{"--include", dir + "/conf.d/20.conf", "--maxclients", "3"}, nil)
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
		"include /dev/zero":         "read /dev/zero: not a regular file",
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
	c, err := config.Load([]string{path}, nil)
	require.NoError(t, err)
	require.Equal(t, "900 1 300 10 60 0", value(t, c, "save"))
	require.Equal(t, "-::1 127.0.0.1", value(t, c, "bind"))
	require.Equal(t, "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 1048576 7", value(t, c, "client-output-buffer-limit"))
	c, err = config.Load([]string{path, "--save", "5", "5", "--save", "6", "6"}, nil)
	require.NoError(t, err)
	require.Equal(t, "5 5 6 6", value(t, c, "save"))
	c, err = config.Load([]string{writeConfig(t, "save 900 1\nsave \"\"\nsave 4 4\n")}, nil)
	require.NoError(t, err)
	require.Equal(t, "4 4", value(t, c, "save"))
}

// TestConfigurationFromStandardInput: a last argument "-" reads it, between the file and
// the flags.
func TestConfigurationFromStandardInput(t *testing.T) {
	path := writeConfig(t, "timeout 1\nmaxclients 1\nport 1\n")
	c, err := config.LoadFrom([]string{path, "--port", "3", "-"}, nil, strings.NewReader("timeout 2\nport 2\n"))
	require.NoError(t, err)
	got := values(c)
	require.Equal(t, []string{"2", "1", "3"}, []string{got["timeout"], got["maxclients"], got["port"]})
	_, err = config.LoadFrom([]string{"-"}, nil, strings.NewReader("\nport x\n"))
	require.ErrorContains(t, err, `standard input:2: option "port"`)
	_, err = config.Load([]string{"-"}, nil)
	require.ErrorContains(t, err, "standard input: there is none")
}
