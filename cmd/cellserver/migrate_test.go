//go:build real

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// patience is the timeout of every wait.
const patience = time.Minute

// startRedis starts a redis-server on dir and returns a client and its address.
func startRedis(t *testing.T, dir string, flags ...string) (*redis.Client, string) {
	t.Helper()
	programs.Need(t, "redis-server")
	socket := filepath.Join(dir, "redis")
	server := exec.Command("redis-server", append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, flags...)...)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.Eventually(t, func() bool { return c.Ping(context.Background()).Err() == nil }, patience, 10*time.Millisecond)
	return c, "unix://" + socket
}

// TestImportAndExport: import takes over live keys of redis-cell with their TATs and counts others
// by reason. Export stores them as redis-cell does.
func TestImportAndExport(t *testing.T) {
	dir := t.TempDir()
	plain, address := startRedis(t, dir)
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: plain.Options().Addr, DB: 3})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	tat := strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10)
	for key, value := range map[string]string{"user:1": tat, "user:2": tat, "other:1": tat, "user:word": "word", "user:past": "17"} {
		require.NoError(t, c.Set(ctx, key, value, time.Hour).Err())
	}
	require.NoError(t, c.Set(ctx, "user:forever", tat, 0).Err())
	require.NoError(t, c.LPush(ctx, "user:list", "x").Err())

	var out bytes.Buffer
	state := filepath.Join(dir, "state")
	require.NoError(t, importKeys([]string{address, state, "--match", "user:*", "--dry-run"}, &out))
	require.Contains(t, out.String(), "2 would be imported")
	require.NoDirExists(t, state, "a dry run leaves nothing")
	out.Reset()
	require.NoError(t, importKeys([]string{address, state, "--match", "user:*"}, &out))
	require.Contains(t, out.String(), "6 keys looked at, 2 imported\n1 skipped: not a number\n1 skipped: not a string\n1 skipped: over: its TAT has passed\n1 skipped: without a TTL, so not redis-cell's\n")

	require.NoError(t, c.FlushAll(ctx).Err())
	out.Reset()
	require.NoError(t, exportKeys([]string{address, state}, &out))
	require.Contains(t, out.String(), "2 keys looked at, 2 exported\n")
	got, err := c.Get(ctx, "user:1").Int64()
	require.NoError(t, err)
	want, err := strconv.ParseInt(tat, 10, 64)
	require.NoError(t, err)
	require.Equal(t, want, got, "a TAT comes back as it was stored")
	require.InDelta(t, time.Hour, c.PTTL(ctx, "user:1").Val(), float64(patience))
	for _, args := range [][]string{{address}, {address, state, "more"}, {}, {address, state, "--dri-run"}} {
		require.ErrorContains(t, importKeys(args, &out), "usage")
	}
	require.NoError(t, importKeys([]string{"--dry-run", address, "--match=user:*", state}, &out))
	require.ErrorContains(t, importKeys([]string{address, state, "--db", "16"}, &out), "0 to 15")
	require.ErrorContains(t, exportKeys([]string{address, filepath.Join(dir, "none")}, &out), "no state")
	require.NoDirExists(t, filepath.Join(dir, "none"))
}

// TestImportOfOddKeys: a pattern has Redis' meaning, a shortened TTL stays shortened, and keys that
// no command can name are skipped, as are databases that do not exist here.
func TestImportOfOddKeys(t *testing.T) {
	dir := t.TempDir()
	c, address := startRedis(t, dir, "--databases", "20")
	ctx := context.Background()
	tat := strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10)
	for _, key := range []string{"ip/1.2.3.4", "ip\xff", "ip" + strings.Repeat("x", 20_000)} {
		require.NoError(t, c.Set(ctx, key, tat, time.Hour).Err())
	}
	require.NoError(t, c.Set(ctx, "short", tat, time.Minute).Err())
	far := redis.NewClient(&redis.Options{Network: "unix", Addr: c.Options().Addr, DB: 17})
	t.Cleanup(func() { require.NoError(t, far.Close()) })
	require.NoError(t, far.Set(ctx, "far", tat, time.Hour).Err())

	var out bytes.Buffer
	state := filepath.Join(dir, "state")
	require.NoError(t, importKeys([]string{address, state}, &out))
	require.Contains(t, out.String(), fmt.Sprintf("--dir %s --appenddirname state\n", dir))
	require.Contains(t, out.String(), "4 keys looked at, 3 imported\n1 skipped: in a database beyond 15, which a server does not have\n1 skipped: its key is too long\n")
	require.NoError(t, c.FlushAll(ctx).Err())
	out.Reset()
	require.NoError(t, exportKeys([]string{address, state, "--match", "ip*"}, &out))
	require.Contains(t, out.String(), "3 keys looked at, 2 exported\n1 skipped: not of the pattern\n")
	require.Equal(t, int64(1), c.Exists(ctx, "ip\xff").Val())
	require.NoError(t, exportKeys([]string{address, state}, &out))
	require.InDelta(t, time.Minute, c.PTTL(ctx, "short").Val(), float64(patience))
}

// TestImportWithoutRights: a key that cannot be read, because of missing permissions or a running
// script, is not skipped: the import fails and stores nothing.
func TestImportWithoutRights(t *testing.T) {
	dir := t.TempDir()
	c, address := startRedis(t, dir)
	ctx := context.Background()
	tat := strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10)
	require.NoError(t, c.Set(ctx, "user:1", tat, time.Hour).Err())
	for _, rules := range [][]any{
		{"ACL", "SETUSER", "default", "-pttl"},
		{"ACL", "SETUSER", "default", "+pttl", "-getrange"},
		{"ACL", "SETUSER", "default", "+getrange", "resetkeys", "~other:*"},
	} {
		require.NoError(t, c.Do(ctx, rules...).Err())
		var out bytes.Buffer
		state := filepath.Join(dir, "state")
		require.ErrorContains(t, importKeys([]string{address, state}, &out), "NOPERM")
		require.Contains(t, out.String(), "0 read and not kept")
		require.NoFileExists(t, filepath.Join(state, "cellserver.manifest"))
	}
}
