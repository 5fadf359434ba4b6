package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/missing"
)

// TestDoctorNamesUsedCommandsThatAreMissing: for each command that was called and is missing here,
// the doctor prints the reason of docs/missing.md. It mentions no other missing command.
func TestDoctorNamesUsedCommandsThatAreMissing(t *testing.T) {
	f := &findings{}
	stats := []string{"# Commandstats"}
	for _, g := range slices.Concat(missing.FromRedis, missing.Newer) {
		for _, name := range g.Commands {
			stats = append(stats, "cmdstat_"+name+":calls=3,usec=1")
		}
	}
	for _, name := range []string{"get", "cl.throttle", "json.set", "fcall", "function|list", "readonly", "sort_never"} {
		calls := 7
		if name == "sort_never" {
			calls = 0
		}
		stats = append(stats, fmt.Sprintf("cmdstat_%s:calls=%d,usec=1", name, calls))
	}
	f.readInfo(strings.Join(stats, "\r\n"))
	o := &outcome{}
	o.judgeCommands(f)
	said := slices.Concat(o.loses, o.looks)
	begins := func(text string) int {
		return slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, text) })
	}
	for _, g := range slices.Concat(missing.FromRedis, missing.Newer) {
		for _, name := range g.Commands {
			at := begins(shown(name) + " (3 calls): ")
			require.GreaterOrEqual(t, at, 0, name)
			require.Contains(t, said[at], "is an error here. "+g.What+" ("+g.Status+"): ")
			require.NotContains(t, said[at], "](")
		}
	}
	require.Contains(t, o.loses, "XLEN (3 calls): is an error here. Streams (stays out): No limiter needs this type. Queues belong on Redis.")
	require.Contains(t, o.loses, "JSON.SET (7 calls): is an error here; it belongs to a module or to a later version")
	require.Contains(t, o.loses, "FCALL (7 calls): always replies with an error here")
	require.Contains(t, o.looks, "FUNCTION LIST (7 calls): replies, but always empty here")
	require.Len(t, said, len(f.calls)-4, "all but GET, CL.THROTTLE, READONLY and what was not called")
	require.Equal(t, []string{"3 of the commands that were called, 21 calls: the replies are the same"}, o.moves)
}

// TestDoctorShowsNoSecretOfAnAddress: the command lines in its advice can be copied, except for the
// password.
func TestDoctorShowsNoSecretOfAnAddress(t *testing.T) {
	for given, want := range map[string]string{
		"redis://10.0.0.1:7000":                            "redis://10.0.0.1:7000",
		"redis://:canary@host":                             "redis://:PASSWORD@host",
		"rediss://me:can%40ary@host:1/3?skip_verify=true":  "'rediss://me:PASSWORD@host:1/3?skip_verify=true'",
		"unix://me:canary@/run/redis.sock?password=canary": "unix://me:PASSWORD@/run/redis.sock",
		"redis://host/0?username=u&password=canary#canary": "redis://host/0",
		"redis://:canary@[::1]:6379":                       "'redis://:PASSWORD@[::1]:6379'",
		"redis://canary:%zz@host":                          "ADDRESS",
	} {
		require.Equal(t, want, shownAddress(given), "%q", given)
	}
}

// TestDoctorKnowsCellserver: the doctor recognizes a cellserver.
func TestDoctorKnowsCellserver(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		const address = "redis://127.0.0.1:7002"
		m.w.Start("--bind", "127.0.0.1", "--port", "7002")
		conn, err := m.DialContext(t.Context(), "tcp", "127.0.0.1:7002")
		require.NoError(t, err)
		c := inproc.NewClient(t, conn)
		require.Contains(t, c.Do("CL.THROTTLE", "k", "15", "30", "60"), "*5")
		require.Contains(t, c.Do("SW.ALLOW", "w", "15", "60"), "*5")
		var out bytes.Buffer
		require.NoError(t, (&doctorOptions{dial: m}).run([]string{address}, &out))
		require.NotContains(t, out.String(), "Does not move", "of its own types each moves")
		for _, want := range []string{
			"cellserver, which replies as Redis 7", "1 of 2 keys: limiter of redis-cell; they move with its directory", "1 of 2 keys: ratelimit; they move with its directory",
			"redis-cli -u " + address + " SAVE", "module redis-cell: CL.THROTTLE is built in", "it is a cellserver already",
		} {
			require.Contains(t, out.String(), want)
		}
	})
}

// TestDoctorKnowsWhereLimitsAre: a server with a store has no limits in its directory, and refuses
// to save. One with a manual clock keeps nothing.
func TestDoctorKnowsWhereLimitsAre(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, writeFindings(&out, judge(&findings{
		address: "redis://host:1",
		info:    map[string]string{"redis_version": "7.2.7", "cellserver": "yes"},
		config:  map[string]string{"store": "valkey://u:***@a:1", "appendonly": "no"},
	})))
	require.Contains(t, out.String(), "has its limits in valkey://u:***@a:1: start another with the same --store")
	require.NotContains(t, out.String(), "SAVE")
	require.NotContains(t, out.String(), "copy its dir")

	out.Reset()
	require.NoError(t, writeFindings(&out, judge(&findings{
		address: "redis://host:1", info: map[string]string{"redis_version": "7.2.7", "cellserver": "yes", "clock_manual": "1"},
	})))
	require.Contains(t, out.String(), "a manual clock, for tests only: it keeps nothing to move")
	require.NotContains(t, out.String(), "SAVE")
}

// TestDoctorPrescribesAttaching: the report has complete command lines, with the old server and a
// placeholder for its password where needed.
func TestDoctorPrescribesAttaching(t *testing.T) {
	f := &findings{
		address: "redis://:PASSWORD@10.0.0.1:6380",
		info:    map[string]string{"redis_version": "7.2.7"},
		config:  map[string]string{"requirepass": "***", "appendonly": "yes"},
		kinds:   map[string]*keysOfKind{"string": {keys: 1}},
		users:   2,
	}
	told := func() string {
		var out bytes.Buffer
		require.NoError(t, writeFindings(&out, judge(f)))
		return out.String()
	}
	for _, want := range []string{
		"string, at most 0 bytes; they move by attaching",
		"2 users: write what ACL LIST there prints to a file, and name it with --aclfile",
		"\n  cellserver --dir state --replicaof 10.0.0.1 6380 --appendonly yes --requirepass PASSWORD --masterauth PASSWORD\n",
		"\n  redis-cli -u redis://:PASSWORD@10.0.0.1:6380 CONFIG SET masterauth PASSWORD\n",
		"\n  redis-cli -u redis://:PASSWORD@10.0.0.1:6380 FAILOVER TO NEW 6379 TIMEOUT 10000",
	} {
		require.Contains(t, told(), want)
	}
	require.NotContains(t, told(), "cellserver import", "there is no limiter")
	for field, value := range map[string]string{"role": "slave", "cluster_enabled": "1", "redis_version": "4.0.9"} {
		f.info = map[string]string{"redis_version": "7.2.7", field: value}
		require.NotContains(t, told(), "--replicaof", field)
		require.NotContains(t, told(), "attaching", field)
		require.Contains(t, told(), "\n  cellserver --appendonly yes --requirepass PASSWORD\n", field)
	}
}

// TestDoctorJudges tests findings that no server in a test has.
func TestDoctorJudges(t *testing.T) {
	f := &findings{
		info: map[string]string{
			"redis_version": "6.2.1", "uptime_in_days": "9", "role": "slave", "master_host": "10.0.0.1", "connected_slaves": "2",
			"cluster_enabled": "1", "evicted_keys": "4", "config_file": "/etc/redis/redis.conf",
		},
		calls:   map[string]int64{"cl.throttle": 7, "xadd": 3, "georadius": 1, "fcall": 2, "psync": 1, "config|get": 1, "never": 0},
		keys:    map[int]int64{0: 3, 17: 1},
		config:  map[string]string{"save": "", "appendonly": "no", "cluster-enabled": "yes", "tls-replication": "yes", "client-output-buffer-limit": "normal 0 0 0 slave 0 0 0 pubsub 1 1 1", "novelty": "1"},
		modules: []string{"redis-cell", "ReJSON"},
		looked:  4,
		kinds: map[string]*keysOfKind{
			"hash":        {keys: 1, elements: 200_000},
			"string":      {keys: 2, elements: 1 << 30, longestKey: 20_000},
			"ReJSON-RL\r": {keys: 1},
		},
		outOfTime: true,
	}
	var out bytes.Buffer
	require.NoError(t, writeFindings(&out, judge(f)))
	for _, want := range []string{
		"Redis 6.2.1, up 9 days, 4 keys in 2 databases", "3 of the commands that were called, 9 calls: the replies are the same",
		"XADD (3 calls)", "GEORADIUS (1 calls)", "FCALL (2 calls)", "module ReJSON: modules cannot be loaded here",
		"option cluster-enabled yes: this server is not a node", "option novelty 1: this server does not know it",
		"a hash of 200000 elements: --collection-max-elements 400000", "a string of 1073741824 bytes", "a key of 20000 bytes (string): the longest is 16384",
		"ReJSON-RL?; this type does not exist here", "database 17 (1 keys)", "replica of 10.0.0.1", "2 replicas: start as many servers here", "a node of a cluster", "4 keys were evicted",
		"the time was up after 4 keys", "--client-output-buffer-limit 'normal 0 0 0 slave 0 0 0 pubsub 1 1 1'", "cellserver /etc/redis/redis.conf",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "NEVER")
	require.NotContains(t, out.String(), "\r")
	require.NotContains(t, out.String(), "cellserver import", "there is nothing to import")
}
