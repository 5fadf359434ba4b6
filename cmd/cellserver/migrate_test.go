package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// Live keys of redis-cell come over with their TATs, others are counted by reason,
// and the way back stores them as redis-cell does.
func TestImportAndExport(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("it needs redis-server")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "redis")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DB: 3})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.Eventually(t, func() bool { return c.Ping(ctx).Err() == nil }, patience, 10*time.Millisecond)
	tat := strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10)
	for key, value := range map[string]string{"user:1": tat, "user:2": tat, "other:1": tat, "user:word": "word", "user:past": "17"} {
		require.NoError(t, c.Set(ctx, key, value, time.Hour).Err())
	}
	require.NoError(t, c.Set(ctx, "user:forever", tat, 0).Err())
	require.NoError(t, c.LPush(ctx, "user:list", "x").Err())

	var out bytes.Buffer
	state := filepath.Join(dir, "state")
	address := "unix://" + socket
	require.NoError(t, importKeys([]string{address, state, "--match", "user:*", "--dry-run"}, &out))
	require.Contains(t, out.String(), "2 would be imported")
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
	require.InDelta(t, want, got, float64(time.Second), "clocks of two starts")
	require.InDelta(t, time.Hour, c.PTTL(ctx, "user:1").Val(), float64(patience))
	require.ErrorContains(t, importKeys([]string{address}, &out), "usage")
}
