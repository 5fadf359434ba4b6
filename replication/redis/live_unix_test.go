//go:build real && unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// TestFollowEqualsALivePrimary runs a load of all kinds of commands, with links that are cut at
// any time. In the end all keys must be equal, and there was no second full copy without a
// reason.
func TestFollowEqualsALivePrimary(t *testing.T) {
	for _, diskless := range []bool{false, true} {
		t.Run(fmt.Sprint("diskless ", diskless), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, e storetest.Engine) {
				sync := "no"
				if diskless {
					sync = "yes"
				}
				primary := e.Single(t, storetest.Options{Args: append([]string{
					"--repl-diskless-sync", sync, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "256mb",
				}, throttle...)})
				churnAndCompare(t, primary, diskless)
			})
		})
	}
}

func churnAndCompare(t *testing.T, primary *storetest.Node, diskless bool) {
	t.Helper()
	const seed = 7
	for i := range uint64(4) {
		churn(t, primary, rand.New(rand.NewPCG(seed, i)), 1500)
	}
	populate(primary)
	n := startNode(t)
	f := follow(t, n, primary.Addr, 1, diskless)
	var load sync.WaitGroup
	for i := range uint64(4) {
		load.Go(func() { churn(t, primary, rand.New(rand.NewPCG(seed, 10+i)), 4000) })
	}
	done := make(chan struct{})
	go func() {
		load.Wait()
		close(done)
	}()
	storetest.Await(t, "the first copy", func() error {
		if replid, _, _ := f.Current(); replid == "" {
			return fmt.Errorf("not yet: %s", f.why())
		}
		return nil
	})
	for cuts := 0; ; cuts++ {
		select {
		case <-done:
		case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
			f.cut()
			continue
		}
		break
	}
	awaitLong(t, primary, 3)
	f.awaitSettled(t, primary)
	t.Log(f.why())
	for db := range 4 {
		requireEqual(t, contents(t, primary.Client, db), contents(t, n.client, db))
	}
	// A full copy follows commands that cannot be repeated. The log of the test has the reason.
	if f.wholes > 1 {
		require.Positive(t, f.again.Load(), "everything was copied again without a reason")
	}
}

// populate makes keys of each type in each encoding, small and large, in a database that no
// command flushes.
func populate(primary *storetest.Node) {
	ctx := context.Background()
	conn := primary.Client.Conn()
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	conn.Select(ctx, 3)
	p := conn.Pipeline()
	for _, text := range []string{"", "x", "12", "-300", "70000", "5000000000", "1.50", strings.Repeat("ab", 30), strings.Repeat("compressible ", 90_000), "\x00\xff\r\n"} {
		p.Set(ctx, fmt.Sprintf("text:%.9s:%d", text, len(text)), text, 0)
	}
	for _, n := range []int{1, 100, 600, 5_000} {
		for i := range n {
			p.RPush(ctx, fmt.Sprint("list:", n), i, strings.Repeat("v", i%100))
			p.SAdd(ctx, fmt.Sprint("ints:", n), i*i-50)
			p.SAdd(ctx, fmt.Sprint("set:", n), fmt.Sprint("m", i))
			p.HSet(ctx, fmt.Sprint("hash:", n), fmt.Sprint("f", i), strings.Repeat("v", i%100))
			p.ZAdd(ctx, fmt.Sprint("z:", n), goredis.Z{Score: float64(i%7) / 3, Member: fmt.Sprint("m", i)})
		}
		_, _ = p.Exec(ctx)
	}
	p.RPush(ctx, "longest", strings.Repeat("l", 3<<20), "s")
	p.HSet(ctx, "longest field", strings.Repeat("f", 70_000), strings.Repeat("v", 3<<20))
	_, _ = p.Exec(ctx)
}

// TestSwapCopiesAnew: SWAPDB cannot be applied, so a full copy follows.
func TestSwapCopiesAnew(t *testing.T) {
	primary := storetest.Best(t).Single(t, storetest.Options{})
	n := startNode(t)
	f := follow(t, n, primary.Addr, 1, false)
	primary.Do("SET", "a", 1)
	f.awaitSettled(t, primary)
	primary.Do("SWAPDB", 0, 1)
	primary.Do("SET", "b", 1)
	f.awaitSettled(t, primary)
	for db := range 2 {
		requireEqual(t, contents(t, primary.Client, db), contents(t, n.client, db))
	}
	require.Equal(t, 2, f.wholes)
	require.Equal(t, int64(1), f.again.Load(), "also on the first link")
}

// TestFollowAReplica: a replica passes on the stream of its primary unchanged, so its RDB has the
// database that was selected before.
func TestFollowAReplica(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		primary := e.Single(t, storetest.Options{})
		replica := e.Replica(t, storetest.Options{}, primary, primary.Addr)
		replica.AwaitLink()
		conn := primary.Client.Conn()
		defer conn.Close() //nolint:errcheck // nothing is sent any more
		ctx := context.Background()
		require.NoError(t, conn.Select(ctx, 5).Err())
		require.NoError(t, conn.Set(ctx, "before", 1, 0).Err())
		n := startNode(t)
		f := follow(t, n, replica.Addr, 1, true)
		storetest.Await(t, "the copy", func() error {
			if replid, _, _ := f.Current(); replid == "" {
				return errors.New(f.why())
			}
			return nil
		})
		require.NoError(t, conn.Set(ctx, "behind", 1, 0).Err())
		require.NoError(t, conn.SetBit(ctx, "read", 3, 1).Err())
		storetest.Await(t, "the replica", func() error {
			if was, is := primary.Info("replication")["master_repl_offset"], replica.Info("replication")["master_repl_offset"]; was != is {
				return fmt.Errorf("%s instead of %s", is, was)
			}
			return nil
		})
		f.awaitSettled(t, replica)
		for _, db := range []int{0, 5} {
			requireEqual(t, contents(t, primary.Client, db), contents(t, n.client, db))
		}
		require.Equal(t, 1, f.wholes)
	})
}

// TestSecondConnectionIsRefused: if the user may not read keys, the second connection fails and
// the reason is logged.
func TestSecondConnectionIsRefused(t *testing.T) {
	primary := storetest.Redis(t).Single(t, storetest.Options{Args: throttle})
	n := startNode(t)
	f := follow(t, n, primary.Addr, 1, false)
	f.awaitSettled(t, primary)
	primary.Do("ACL", "SETUSER", "default", "-dump")
	primary.Do("CL.THROTTLE", "a", 1)
	storetest.Await(t, "the reason", func() error {
		if why := f.why(); !strings.Contains(why, "NOPERM") {
			return errors.New(why)
		}
		return nil
	})
	_, _, settled := f.Current()
	require.False(t, settled)
	primary.Do("ACL", "SETUSER", "default", "+dump")
	f.awaitSettled(t, primary)
	require.Equal(t, "1", n.client.Get(context.Background(), "a").Val())
}

// TestFollowAPrimaryWithoutExpireTime: a primary before 7.0 has no PEXPIRETIME, only PTTL. The
// time for which the machine stalls between PTTL and TIME is an error that this server cannot
// avoid.
func TestFollowAPrimaryWithoutExpireTime(t *testing.T) {
	primary := storetest.Redis(t).Single(t, storetest.Options{Args: append([]string{"--rename-command", "PEXPIRETIME", "PEXPIRETIME7"}, throttle...)})
	n := startNode(t)
	f := follow(t, n, primary.Addr, 1, false)
	ctx := context.Background()
	for i := range 300 {
		primary.Client.Set(ctx, fmt.Sprint("s:", i), i, time.Hour)
		primary.Client.SetBit(ctx, fmt.Sprint("s:", i), 3, 1) // read, not executed
		primary.Do("CL.THROTTLE", fmt.Sprint("cell:", i%7), 1)
	}
	f.awaitSettled(t, primary)
	for i := range 300 {
		k := fmt.Sprint("s:", i)
		want, err := primary.Client.Do(ctx, "PEXPIRETIME7", k).Int64()
		require.NoError(t, err)
		got, err := n.client.Do(ctx, "PEXPIRETIME", k).Int64()
		require.NoError(t, err)
		require.InDelta(t, want, got, float64(time.Minute.Milliseconds()), k)
		require.Equal(t, primary.Client.Get(ctx, k).Val(), n.client.Get(ctx, k).Val())
	}
	require.NotZero(t, f.Figures().Read)
}

// churn runs random commands.
func churn(t *testing.T, primary *storetest.Node, r *rand.Rand, steps int) {
	ctx := context.Background()
	conn := primary.Client.Conn()
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	for range steps {
		if r.IntN(20) == 0 {
			conn.Select(ctx, r.IntN(3))
		}
		if r.IntN(10) == 0 {
			_, _ = conn.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				for range 1 + r.IntN(5) {
					p.Do(ctx, command(r)...)
				}
				return nil
			})
			continue
		}
		conn.Do(ctx, command(r)...) // errors of wrong types do not matter
	}
}

// command returns a random command, which mostly changes something.
func command(r *rand.Rand) []any {
	key := func(kind string) string { return fmt.Sprintf("%s:%d", kind, r.IntN(30)) }
	word := func() string { return strings.Repeat(fmt.Sprint(r.IntN(40)), 1+r.IntN(40)) }
	soon := func() int64 {
		return time.Now().Add(time.Hour + time.Duration(r.IntN(1e6))*time.Millisecond).UnixMilli()
	}
	tat := func() int64 { return time.Now().Add(time.Hour + time.Duration(r.Int64N(1e15))).UnixNano() }
	s, l, z, h, set, cell := key("s"), key("l"), key("z"), key("h"), key("set"), key("cell")
	all := [][]any{
		{"CL.THROTTLE", cell, r.IntN(1e9)},
		{"CL.THROTTLE", cell, r.IntN(1e9)},
		{"CL.THROTTLE", cell, r.IntN(1e9)},
		{"SET", cell, tat(), "PXAT", soon()},
		{"INCR", cell},
		{"DEL", cell},
		{"RENAME", cell, key("cell")},
		{"DECRBY", cell, 5},
		{"SET", s, word()},
		{"SET", s, r.IntN(1e6), "PXAT", soon()},
		{"SET", s, word(), "NX"},
		{"SET", s, word(), "XX", "KEEPTTL"},
		{"SET", s, word(), "GET"},
		{"SET", s, word(), "EX", 5000},
		{"SETEX", s, 4000, word()},
		{"PSETEX", s, 4000000, word()},
		{"SETNX", s, word()},
		{"GETSET", s, word()},
		{"GETDEL", s},
		{"GETEX", s, "EX", 4000},
		{"GETEX", s, "PERSIST"},
		{"INCR", s},
		{"DECR", s},
		{"INCRBYFLOAT", s, "1.5"},
		{"APPEND", s, word()},
		{"SETRANGE", s, r.IntN(200), word()},
		{"MSET", s, word(), key("s"), word()},
		{"MSETNX", s, word(), key("s"), word()},
		{"DEL", s, key("s")},
		{"UNLINK", s},
		{"EXPIRE", s, 3000},
		{"PEXPIRE", s, 3000000},
		{"EXPIREAT", s, soon() / 1000},
		{"PEXPIREAT", s, soon()},
		{"PERSIST", s},
		{"PEXPIRE", s, r.IntN(100)},
		{"SET", s, word(), "PX", 1 + r.IntN(50)},
		{"RENAME", s, key("s")},
		{"RENAMENX", s, key("s")},
		{"COPY", s, key("s"), "REPLACE"},
		{"COPY", s, key("s"), "DB", r.IntN(3)},
		{"MOVE", s, r.IntN(3)},
		{"SETBIT", s, r.IntN(100), 1},
		{"BITOP", "NOT", s, key("s")},
		{"BITFIELD", s, "INCRBY", "u8", 1, 1},
		{"PFADD", key("hll"), word()},
		{"PFMERGE", key("hll"), key("hll")},
		{"HSET", h, word(), word()},
		{"HSET", h, "n", r.IntN(10)},
		{"HMSET", h, word(), word()},
		{"HSETNX", h, word(), word()},
		{"HDEL", h, word()},
		{"HINCRBY", h, "n", 3},
		{"HINCRBYFLOAT", h, "n", "0.5"},
		{"EXPIRE", h, 2000},
		{"LPUSH", l, word(), word()},
		{"RPUSH", l, word()},
		{"LPUSHX", l, word()},
		{"RPUSHX", l, word()},
		{"LPOP", l},
		{"RPOP", l, 2},
		{"LSET", l, 0, word()},
		{"LTRIM", l, 0, 20},
		{"LREM", l, 1, word()},
		{"LINSERT", l, "BEFORE", word(), word()},
		{"RPOPLPUSH", l, key("l")},
		{"LMOVE", l, key("l"), "LEFT", "RIGHT"},
		{"BLMOVE", l, key("l"), "LEFT", "RIGHT", "0.001"},
		{"LMPOP", 1, l, "LEFT"},
		{"SORT", l, "ALPHA", "STORE", key("l")},
		{"SADD", set, word(), r.IntN(100)},
		{"SADD", set, r.IntN(100)},
		{"SREM", set, word()},
		{"SPOP", set},
		{"SPOP", set, 3},
		{"SMOVE", set, key("set"), word()},
		{"SUNIONSTORE", set, key("set"), key("set")},
		{"SINTERSTORE", set, key("set"), key("set")},
		{"ZADD", z, r.IntN(50), word()},
		{"ZADD", z, "GT", "CH", r.Float64(), word()},
		{"ZADD", z, "NX", r.Float64(), word()},
		{"ZADD", z, "INCR", 2, word()},
		{"ZADD", z, "inf", word()},
		{"ZREM", z, word()},
		{"ZINCRBY", z, "1.25", word()},
		{"ZPOPMIN", z},
		{"ZPOPMAX", z, 2},
		{"ZREMRANGEBYSCORE", z, 0, 5},
		{"ZREMRANGEBYRANK", z, 0, 0},
		{"ZREMRANGEBYLEX", z, "[1", "[2"},
		{"ZUNIONSTORE", z, 2, key("z"), key("z")},
		{"ZRANGESTORE", z, key("z"), 0, 3},
		{"GEOADD", key("z"), "13.3", "38.1", "p" + word()},
		{"EVAL", "redis.call('SET', KEYS[1], ARGV[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('CL.THROTTLE', KEYS[3], 7)", 3, s, l, cell, word()},
		{"XADD", "stream", "*", "a", "b"},
		{"DEL", "stream"},
		{"PUBLISH", "c", "m"},
		{"SETEX", "gone:" + s, 1, word()},
	}
	if r.IntN(700) == 0 {
		return []any{"FLUSHDB"}
	}
	return all[r.IntN(len(all))]
}
