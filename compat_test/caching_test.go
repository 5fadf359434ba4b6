//go:build real

package compat_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
)

// cacheRounds is in how many rounds each client keeps a value that is then changed.
const cacheRounds = 300

// cachingClients are the libraries that cache what they read. binaries holds the built Go
// programs.
func cachingClients(binaries string) []client {
	python := func(name, version, pins, program string) client {
		return client{
			name: name + "-" + version, version: version, dir: "python",
			command:   []string{filepath.Join(".venv", pins, "bin", "python"), program},
			installed: filepath.Join(".venv", pins, ".installed"), inputs: []string{"requirements-" + pins + ".txt"},
		}
	}
	lettuce := func(version string, before ...string) client {
		classpath := append(append([]string{"target/classes"}, before...), "target/lib/*")
		return client{
			name: "lettuce-" + version, version: version, dir: "java",
			command: []string{
				"java", "-XX:TieredStopAtLevel=1", "-cp",
				strings.Join(classpath, string(os.PathListSeparator)), "compat.CachingProgram",
			},
			installed: filepath.Join("target", ".installed"), inputs: []string{"pom.xml", "src"},
		}
	}
	return []client{
		{name: "rueidis", dir: "go", command: []string{filepath.Join(binaries, "caching")}},
		nodeClient("node-redis", "5.12.1", "caching.js", "redis5", nil),
		nodeClient("node-redis", "6.3.1", "caching.js", "redis6", nil),
		python("redis-py", "8.1.0", "8", "caching.py"),
		python("redis-py", "5.3.1", "5", "caching.py"),
		python("coredis", "6.9.0", "coredis", "caching_coredis.py"),
		lettuce("6.8.1.RELEASE", "target/lettuce-6/*"),
		lettuce("7.7.0.RELEASE"),
	}
}

// TestClientCachesAreNeverStale: a real client with CLIENT TRACKING caches values, and drops a
// cached value when another client has changed it, in each of many rounds.
func TestClientCachesAreNeverStale(t *testing.T) {
	if testing.Short() {
		t.Skip("real clients are left to the full test run")
	}
	noticeChanges(t)
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	for _, c := range cachingClients(buildGoClients(t)) {
		t.Run(c.name, func(t *testing.T) {
			c.needs(t)
			runCaching(t, &c, startServer(t, server).Addr)
		})
	}
}

// runCaching runs one program and looks at how much it has asked for.
func runCaching(t *testing.T, c *client, address string) {
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Dir = filepath.Join("clients", c.dir)
	cmd.Env = append(os.Environ(), "CELL_ADDR="+address, "CELL_ROUNDS="+strconv.Itoa(cacheRounds), "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", out, stderr.String())
	require.Contains(t, string(out), "\nok never-stale\n")
	if c.version != "" {
		require.Contains(t, string(out), "info version "+c.version)
	}

	control := redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { require.NoError(t, control.Close()) })
	info, err := control.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	found := regexp.MustCompile(`cmdstat_get:calls=(\d+),`).FindStringSubmatch(info)
	require.NotNil(t, found, info)
	reads, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	// Each round reads four times at least, and two of these have to be answered.
	require.Less(t, reads, 3*cacheRounds, "it keeps nothing")
}
