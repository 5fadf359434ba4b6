package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/missing"
	"github.com/cellserver/cellserver/limit"
)

// called returns the calls by command that a server has counted.
func called(t *testing.T, c *redis.Client) map[string]int64 {
	t.Helper()
	text, err := c.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	f := &findings{}
	f.readInfo(text)
	return f.calls
}

// fillOld gives a server some of everything that a program may have left there.
func fillOld(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := context.Background()
	pipe := c.Pipeline()
	tat := strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10)
	for i := range 300 {
		pipe.Set(ctx, fmt.Sprintf("limit:%d", i), tat, time.Hour)
	}
	for i := range 20 {
		pipe.Incr(ctx, fmt.Sprintf("hits:%d", i))
	}
	pipe.HSet(ctx, "hash", "f", "v")
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []string{"f", "v"}})
	pipe.PFAdd(ctx, "visitors", "a", "b")
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
}

// TestDoctorSaysWhatMoves: commands, keys and options of a real Redis, what is not here,
// and how to move; and it only reads.
func TestDoctorSaysWhatMoves(t *testing.T) {
	c, address := startRedis(t, t.TempDir(), "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "77", "--hash-max-listpack-entries", "4", "--appendonly", "yes")
	fillOld(t, c)
	ctx := context.Background()
	require.NoError(t, c.ConfigResetStat(ctx).Err())
	require.NoError(t, c.XLen(ctx, "stream").Err())
	require.NoError(t, c.Get(ctx, "hits:1").Err())
	changes := func() string {
		text, err := c.Info(ctx, "persistence").Result()
		require.NoError(t, err)
		_, after, _ := strings.Cut(text, "rdb_changes_since_last_save:")
		n, _, _ := strings.Cut(after, "\r\n")
		return n
	}
	before := changes()
	var out bytes.Buffer
	require.NoError(t, doctor([]string{address}, &out))
	for _, want := range []string{
		"323 keys in 1 databases, of which 323 were examined",
		"300 of 323 keys: limiter of redis-cell; cellserver import copies them",
		"20 of 323 keys: string, at most 1 bytes; this type exists here too, but the keys are not copied",
		"1 of 323 keys: hash, at most 1 elements",
		"1 of 323 keys: stream; this type does not exist here",
		"1 of 323 keys: HyperLogLog; this type does not exist here",
		"XLEN (1 calls): is an error here",
		"option maxmemory-policy allkeys-lru: argument must be noeviction",
		"cellserver import " + address + " state/appendonlydir",
		"cellserver --dir state --maxmemory 52428800 --timeout 77 --appendonly yes",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "GET (")
	require.NotContains(t, out.String(), "--proto-max-bulk-len", "nobody has asked for Redis' default")
	require.Equal(t, before, changes())
	for name := range called(t, c) {
		if name == "xlen" || name == "get" || name == "config|resetstat" {
			continue // the test's own
		}
		name, sub, _ := strings.Cut(name, "|")
		allowed, known := readOnly[name]
		require.True(t, known && (sub == "" || sub == allowed), "the doctor has sent %s %s", name, sub)
	}
}

// TestDoctorNamesUsedCommandsThatAreMissing: of each command that was called and is not
// here the doctor gives the reason of docs/missing.md; it says nothing about others.
func TestDoctorNamesUsedCommandsThatAreMissing(t *testing.T) {
	f := &findings{}
	stats := []string{"# Commandstats"}
	for _, g := range missing.FromRedis {
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
	o := &opinion{}
	o.judgeCommands(f)
	said := slices.Concat(o.loses, o.looks)
	begins := func(text string) int {
		return slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, text) })
	}
	for _, g := range missing.FromRedis {
		for _, name := range g.Commands {
			at := begins(shown(name) + " (3 calls): ")
			require.GreaterOrEqual(t, at, 0, name)
			require.Contains(t, said[at], "is an error here. "+g.What+" ("+g.Status+"): ")
			require.NotContains(t, said[at], "](")
		}
	}
	require.Contains(t, o.loses, "XLEN (3 calls): is an error here. Streams (stays out): No limiter needs this type. Queues belong on Redis.")
	require.Contains(t, o.loses, "JSON.SET (7 calls): is an error here; it belongs to a module or to a version after 7.2")
	require.Contains(t, o.loses, "FCALL (7 calls): always replies with an error here")
	require.Contains(t, o.looks, "FUNCTION LIST (7 calls): replies, but always empty here")
	require.Len(t, said, len(f.calls)-4, "all but GET, CL.THROTTLE, READONLY and what was not called")
	require.Equal(t, []string{"3 of the commands that were called, 21 calls: the replies are the same"}, o.moves)
}

// TestDoctorIsBounded: it looks at no more keys than asked for, and ends in time.
func TestDoctorIsBounded(t *testing.T) {
	c, address := startRedis(t, t.TempDir(), "--enable-debug-command", "local")
	ctx := context.Background()
	require.NoError(t, c.Do(ctx, "DEBUG", "POPULATE", "100000").Err())
	require.NoError(t, c.ConfigResetStat(ctx).Err())
	var out bytes.Buffer
	require.NoError(t, doctor([]string{address, "--sample", "500"}, &out))
	require.Contains(t, out.String(), "100000 keys in 1 databases, of which 500 were examined")
	calls := called(t, c)
	require.LessOrEqual(t, calls["scan"], int64(10))
	require.LessOrEqual(t, calls["type"], int64(500))

	out.Reset()
	require.NoError(t, doctor([]string{"--sample", "0", address}, &out))
	require.Contains(t, out.String(), "of which 0 were examined")

	// A server that never answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	require.ErrorContains(t, doctor([]string{"redis://" + silent.Addr().String(), "--timeout", "50ms"}, &out), "it took too long")
}

// TestDoctorOnlyReads: the client that it has cannot send anything else.
func TestDoctorOnlyReads(t *testing.T) {
	c, _ := startRedis(t, t.TempDir())
	ctx := context.Background()
	c.AddHook(onlyRead{})
	require.ErrorContains(t, c.Set(ctx, "k", "v", 0).Err(), "the doctor only reads, and does not send set")
	require.ErrorContains(t, c.ConfigSet(ctx, "timeout", "1").Err(), "does not send config")
	pipe := c.Pipeline()
	pipe.Type(ctx, "k")
	pipe.Del(ctx, "k")
	_, err := pipe.Exec(ctx)
	require.ErrorContains(t, err, "does not send del")
	require.NoError(t, c.ConfigGet(ctx, "timeout").Err())
}

// TestDoctorErrorsAreClear: what is wrong with an address, a password, a right, and what
// may not be read is said and goes without.
func TestDoctorErrorsAreClear(t *testing.T) {
	port := freeport.Choose()
	c, _ := startRedis(t, t.TempDir(), "--port", port)
	ctx := context.Background()
	require.NoError(t, c.Do(ctx, "ACL", "SETUSER", "doc", "on", ">canary2", "~*", "-@all", "+info", "+scan", "+type", "+pttl", "+ping").Err())
	require.NoError(t, c.Do(ctx, "ACL", "SETUSER", "none", "on", ">canary3", "-@all").Err())
	require.NoError(t, c.ConfigSet(ctx, "requirepass", "canary1").Err())
	host := "127.0.0.1:" + port
	var out bytes.Buffer
	for address, want := range map[string]string{
		"redis://" + host:                         "requires a password",
		"redis://:canary9@" + host:                "user or password is wrong",
		"redis://nobody:canary9@" + host:          "user or password is wrong",
		"redis://none:canary3@" + host:            "the user may not do this",
		"rediss://:canary1@" + host:               "the server does not use TLS on this port",
		"redis://127.0.0.1:" + freeport.Choose():  "nothing listens at this address",
		"http://:canary1@" + host:                 "invalid URL scheme: http",
		"canary1@" + host:                         "is not an address: write redis://",
		"redis://:canary1@" + host + "/x":         "invalid database number",
		"redis://us er:canary1@" + host:           "invalid",
		"redis://:canary1@" + host + "?canary1=1": "unexpected option",
	} {
		timeout := "1m"
		if strings.HasPrefix(address, "rediss") { // where the server waits for the end of a command
			timeout = "300ms"
		}
		err := doctor([]string{address, "--timeout", timeout}, &out)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, strings.ReplaceAll(err.Error(), "unexpected option: canary1", ""), "canary")
	}
	require.Empty(t, out.String())
	require.NoError(t, doctor([]string{"redis://doc:canary2@" + host}, &out))
	require.Contains(t, out.String(), "could not be read: CONFIG GET (NOPERM")
	require.Contains(t, out.String(), "could not be read: MODULE LIST (NOPERM")
	out.Reset()
	require.NoError(t, doctor([]string{"redis://:canary1@" + host}, &out))
	require.Contains(t, out.String(), "3 users: only one exists here, default")
	require.Contains(t, out.String(), "it has a password: set requirepass")
	require.NotContains(t, out.String(), "canary")
}

// TestDoctorShowsNoSecretOfAnAddress: the commands that it advises can be copied, but for
// the password.
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

// TestDoctorKnowsCellserver: it reads one, and says what it is.
func TestDoctorKnowsCellserver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := inproc.New(limit.Instant(time.Now().UnixNano()), []net.Listener{l})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
	c := redis.NewClient(&redis.Options{Addr: l.Addr().String()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Do(context.Background(), "CL.THROTTLE", "k", 15, 30, 60).Err())
	require.NoError(t, c.Do(context.Background(), "SW.ALLOW", "w", 15, 60).Err())
	var out bytes.Buffer
	require.NoError(t, doctor([]string{"redis://" + l.Addr().String()}, &out))
	require.NotContains(t, out.String(), "Does not move", "of its own types each moves")
	for _, want := range []string{"cellserver, which replies as Redis 7", "1 of 2 keys: limiter of redis-cell; they move with its directory", "1 of 2 keys: ratelimit; they move with its directory", "redis-cli -u redis://" + l.Addr().String() + " SAVE", "module redis-cell: CL.THROTTLE is built in", "it is a cellserver already"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "Does not move")
}

// TestDoctorKnowsWhereLimitsAre: a server with a store has nothing in its directory, and
// refuses to save.
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
}

// TestDoctorJudges: what no server of a test has.
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
