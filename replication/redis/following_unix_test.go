//go:build real && unix

package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// attached starts a Redis or Valkey, and a server that follows it.
func attached(t *testing.T, args ...string) (old *storetest.Node, ours *real, client *goredis.Client) {
	t.Helper()
	old = storetest.Best(t).Single(t, storetest.Options{Args: args})
	ours = startBesideReal(t, "auto")
	attachTo(t, ours, old)
	client = goredis.NewClient(&goredis.Options{Addr: ours.Addr().String(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return old, ours, client
}

// TestFollowAScriptInSeveralDatabases: a script is replicated as a transaction that selects
// databases. Its changes must be made in these databases.
func TestFollowAScriptInSeveralDatabases(t *testing.T) {
	old, ours, client := attached(t)
	ctx := context.Background()
	old.Do("EVAL", "for i = 0, 2 do redis.call('SELECT', i) redis.call('SET', 'db', i) redis.call('SET', 'in ' .. i, i) end return 1", 0)
	awaitSettled(t, ours, old)
	for db := range 3 {
		conn := client.Conn()
		defer conn.Close() //nolint:errcheck // nothing is sent any more
		require.NoError(t, conn.Select(ctx, db).Err())
		require.ElementsMatch(t, []string{"db", fmt.Sprint("in ", db)}, conn.Keys(ctx, "*").Val())
		require.Equal(t, fmt.Sprint(db), conn.Get(ctx, "db").Val())
	}
}

// TestFollowAKeyThatIsProlongedInTime: the primary has incremented a key and extended its expiry
// before it expired. This server receives that when the key has already expired here.
func TestFollowAKeyThatIsProlongedInTime(t *testing.T) {
	old, ours, client := attached(t)
	ctx := context.Background()
	read := 0
	for inTime := false; !inTime; { // if the machine stalls, the key expires on the primary, too
		require.NoError(t, old.Client.Set(ctx, "window", 41, 3*time.Second).Err())
		attachTo(t, ours, old)
		read = keysRead(t, ours)
		require.Equal(t, "+OK\r\n", ours.Dial().Do("REPLICAOF", "127.0.0.1", freeport.Choose()))
		inproc.Await(t, "the link has ended", func() bool { return old.Info("replication")["connected_slaves"] == "0" })
		inTime = old.Client.Incr(ctx, "window").Val() == 42 && old.Client.PExpire(ctx, "window", time.Hour).Val()
	}
	inproc.Await(t, "the key has expired here", func() bool { return client.Exists(ctx, "window").Val() == 0 })
	attachTo(t, ours, old)
	require.Equal(t, "42", client.Get(ctx, "window").Val())
	require.Equal(t, old.Client.PExpireTime(ctx, "window").Val(), client.PExpireTime(ctx, "window").Val())
	require.Equal(t, read+1, keysRead(t, ours))
}

// keysRead returns how many keys of the primary a server has read.
func keysRead(t *testing.T, f *real) int {
	t.Helper()
	n, err := strconv.Atoi(f.replication()["cell_attach_keys_read"])
	require.NoError(t, err)
	return n
}

// TestFollowANodeOfACluster: such a node refuses transactions on keys of several slots, so keys
// are read one by one.
func TestFollowANodeOfACluster(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		old := e.Single(t, storetest.Options{Args: []string{"--cluster-enabled", "yes", "--cluster-port", freeport.Choose()}})
		ctx := context.Background()
		old.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
		storetest.Await(t, "the cluster", func() error { return old.Client.Set(ctx, "k", "v", 0).Err() })
		ours := startBesideReal(t, "auto")
		attachTo(t, ours, old)
		for i := range 300 {
			old.Do("SETBIT", fmt.Sprint("k", i), i%8, 1)
		}
		awaitSettled(t, ours, old)
		conn := ours.Dial()
		for i := range 300 {
			k := fmt.Sprint("k", i)
			require.Equal(t, inproc.Bulk(old.Client.Get(ctx, k).Val()), conn.Do("GET", k))
		}
	})
}

// TestARedisThatComesBackEmptyIsRefused: the Redis has restarted without files, and this server
// has the only copy of its data.
func TestARedisThatComesBackEmptyIsRefused(t *testing.T) {
	old, ours, client := attached(t)
	ctx := context.Background()
	old.Do("SET", "k", "v")
	awaitSettled(t, ours, old)
	old.Kill()
	old.Restart()
	inproc.Await(t, "the reason", func() bool { return strings.Contains(ours.replication()["cell_repl_error"], "repl-refuse-empty") })
	require.Equal(t, "v", client.Get(ctx, "k").Val())
	require.Equal(t, "down", ours.replication()["master_link_status"])

	old.Do("SET", "other", "v")
	awaitSettled(t, ours, old)
	require.EqualValues(t, 1, client.DBSize(ctx).Val())
	require.Equal(t, "+OK\r\n", ours.Dial().Do("CONFIG", "SET", "repl-refuse-empty", "no"))
	old.Kill()
	old.Restart()
	awaitSettled(t, ours, old)
	require.Zero(t, client.DBSize(ctx).Val())
}
