//go:build real

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// called returns the numbers of calls by command of a server.
func called(t *testing.T, c *redis.Client) map[string]int64 {
	t.Helper()
	text, err := c.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	f := &findings{}
	f.readInfo(text)
	return f.calls
}

// fillOld stores values of all kinds that a program may have left on a server.
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

// TestDoctorSaysWhatMoves: on a real Redis the report has commands, keys and options that work,
// those that do not, and how to move. The doctor only reads.
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
		"300 of 323 keys: limiter of redis-cell; they move with their usage, by attaching or by cellserver import",
		"20 of 323 keys: string, at most 1 bytes; they move by attaching",
		"1 of 323 keys: hash, at most 1 elements",
		"1 of 323 keys: stream; this type does not exist here",
		"1 of 323 keys: HyperLogLog; this type does not exist here",
		"XLEN (1 calls): is an error here",
		"option maxmemory-policy allkeys-lru: argument must be noeviction",
		"cellserver import " + address + " state/appendonlydir",
		"cellserver --dir state --maxmemory 52428800 --timeout 77 --appendonly yes",
		"cellserver --dir state --replicaof HOST PORT --maxmemory 52428800",
		"redis-cli -u " + address + " FAILOVER TO NEW 6379",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "GET (")
	require.NotContains(t, out.String(), "--proto-max-bulk-len", "nobody has asked for Redis' default")
	require.Equal(t, before, changes())
	for name := range called(t, c) {
		if name == "xlen" || name == "get" || name == "config|resetstat" {
			continue // sent by the test itself
		}
		name, sub, _ := strings.Cut(name, "|")
		allowed, known := readOnly[name]
		require.True(t, known && (sub == "" || sub == allowed), "the doctor has sent %s %s", name, sub)
	}
}

// TestDoctorIsBounded: the doctor examines no more keys than requested, and ends in time.
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

	// This server never replies.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	require.ErrorContains(t, doctor([]string{"redis://" + silent.Addr().String(), "--timeout", "50ms"}, &out), "it took too long")
}

// TestDoctorOnlyReads: its client cannot send other commands.
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

// TestDoctorErrorsAreClear: a wrong address, a wrong password or a missing permission has a clear
// error, and the report leaves out what it may not read.
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
		if strings.HasPrefix(address, "rediss") { // the server waits for the end of a command there
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
	require.Contains(t, out.String(), "3 users: write what ACL LIST there prints to a file")
	require.Contains(t, out.String(), "it has a password, PASSWORD below")
	require.Contains(t, out.String(), " --requirepass PASSWORD\n")
	require.NotContains(t, out.String(), "canary")
}
