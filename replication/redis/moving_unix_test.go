//go:build real && unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// tats are the limiters of a Redis: their initial TATs, and how often they were charged since.
type tats struct{ began, charged [200]int64 }

// TestMovingFromARedisAndBack follows a Redis under load, takes over by FAILOVER, and then has it
// as a replica. No charge and no value is lost on either server.
func TestMovingFromARedisAndBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		ctx := context.Background()
		old := e.Single(t, storetest.Options{Password: "secret", Args: throttle})
		var limiters tats
		load(old, &limiters)
		ours := startBesideReal(t, "auto", "--masterauth", "secret")
		chained := startBesideReal(t, "auto")
		attachTo(t, ours, old)
		chained.follow(ours)
		client := goredis.NewClient(&goredis.Options{Addr: ours.Addr().String(), Protocol: 2, DisableIdentity: true, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		require.ErrorContains(t, client.Set(ctx, "a", 1, 0).Err(), "READONLY")
		link := ours.Dial().Do("CLIENT", "LIST", "TYPE", "master")
		require.Equal(t, []string{old.Addr, "M", "(superuser)"}, []string{inproc.Field(link, "addr"), inproc.Field(link, "flags"), inproc.Field(link, "user")})

		var churning sync.WaitGroup
		for i := range 4 {
			churning.Go(func() { churnUntilReadOnly(old, i, &limiters) })
		}
		storetest.Await(t, "some load", func() error {
			if n, _ := strconv.Atoi(ours.replication()["cell_attach_keys_read"]); n < 300 {
				return fmt.Errorf("%d keys were read", n)
			}
			return nil
		})
		host, port := ours.place()
		old.Do("FAILOVER", "TO", host, port, "TIMEOUT", 30000)
		churning.Wait()
		storetest.Await(t, "the roles", func() error {
			if is := ours.replication(); is["role"] != "master" || !strings.Contains(is["slave0"], "state=online") {
				return fmt.Errorf("%v", is)
			}
			if is := old.Info("replication"); is["role"] != "slave" || is["master_link_status"] != "up" {
				return fmt.Errorf("%v", is)
			}
			return nil
		})
		for i := range limiters.began {
			tat, err := client.Get(ctx, fmt.Sprint("cell:", i)).Int64()
			require.NoError(t, err)
			require.Equal(t, limiters.began[i]+limiters.charged[i]*charge, tat, "cell:%d", i)
		}
		requireSameKeys(t, old.Client, client)

		// The way back: changes on this server reach the old one.
		for i := range 100 {
			require.NoError(t, client.Set(ctx, fmt.Sprint("new:", i), i, time.Hour).Err())
			require.NoError(t, client.RPush(ctx, "l:1", i).Err())
			require.NoError(t, client.Del(ctx, fmt.Sprint("s:", i)).Err())
			require.NoError(t, client.Do(ctx, "CL.THROTTLE", fmt.Sprint("limit:", i), 15, 30, 3600).Err())
		}
		require.Equal(t, int64(2), client.Wait(ctx, 2, time.Minute).Val(), "the old one and the chained one have everything")
		requireSameKeys(t, client, old.Client)
		ours.agree(chained)
		require.ErrorContains(t, client.Do(ctx, "FAILOVER", "TO", "127.0.0.1", enginePort(t, old)).Err(), "Redis or Valkey")
		old.Do("REPLICAOF", "NO", "ONE")
		old.Do("SET", "it is", "a primary")
	})
}

// TestMovingWithoutFailover ends with REPLICAOF NO ONE, after links that were cut.
func TestMovingWithoutFailover(t *testing.T) {
	old := storetest.Best(t).Single(t, storetest.Options{Args: throttle})
	var limiters tats
	load(old, &limiters)
	ours := startBesideReal(t, "goroutine", "--appendonly", "yes")
	attachTo(t, ours, old)
	for i := range 5 {
		old.Do("SET", "round", i)
		old.Do("CLIENT", "KILL", "TYPE", "replica")
		attachTo(t, ours, old)
	}
	awaitSettled(t, ours, old)
	c := ours.Dial()
	require.Equal(t, "+OK\r\n", c.Do("REPLICAOF", "NO", "ONE"))
	inproc.Await(t, "a primary", func() bool { return ours.replication()["role"] == "master" })
	require.Equal(t, inproc.Bulk("4"), c.Do("GET", "round"))
	require.Equal(t, "+OK\r\n", c.Do("SET", "round", "ours"))
	require.Equal(t, "0", ours.replication()["cell_attach_attached"])
	client := goredis.NewClient(&goredis.Options{Addr: ours.Addr().String(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	old.Do("SET", "round", "ours")
	requireSameKeys(t, old.Client, client)
}

// attachTo makes f follow a Redis, unless it already does, and waits until it has everything.
func attachTo(t *testing.T, f *real, old *storetest.Node) {
	t.Helper()
	host, port, err := net.SplitHostPort(old.Addr)
	require.NoError(t, err)
	require.Contains(t, f.Dial().Do("REPLICAOF", host, port), "+OK")
	awaitSettled(t, f, old)
	storetest.Await(t, "the replica in INFO", func() error {
		if is := old.Info("replication")["slave0"]; !strings.Contains(is, "state=online") {
			return errors.New(is)
		}
		return nil
	})
}

// awaitSettled waits until f has everything that a Redis has done.
func awaitSettled(t *testing.T, f *real, old *storetest.Node) {
	t.Helper()
	storetest.Await(t, "the state of the Redis", func() error {
		is, has := old.Info("replication"), f.replication()
		if has["master_link_status"] != "up" || has["cell_attach_settled"] != "1" || is["master_repl_offset"] != has["slave_repl_offset"] {
			return fmt.Errorf("%v: %v", is["master_repl_offset"], has)
		}
		return nil
	})
}

func enginePort(t *testing.T, n *storetest.Node) string {
	t.Helper()
	_, port, err := net.SplitHostPort(n.Addr)
	require.NoError(t, err)
	return port
}

// load makes keys of all kinds, and limiters.
func load(old *storetest.Node, limiters *tats) {
	ctx := context.Background()
	p := old.Client.Pipeline()
	for i := range limiters.began {
		at := time.Now().Add(time.Hour + time.Duration(i)*time.Second)
		limiters.began[i] = at.UnixNano()
		p.Set(ctx, fmt.Sprint("cell:", i), at.UnixNano(), 0)
		p.PExpireAt(ctx, fmt.Sprint("cell:", i), at)
		p.Set(ctx, fmt.Sprint("s:", i), strings.Repeat("v", i), time.Duration(i%2)*time.Hour)
		p.RPush(ctx, fmt.Sprint("l:", i%20), i, "x")
		p.SAdd(ctx, fmt.Sprint("set:", i%20), i)
		p.HSet(ctx, fmt.Sprint("h:", i%20), i, i)
		p.ZAdd(ctx, fmt.Sprint("z:", i%20), goredis.Z{Score: float64(i), Member: i})
	}
	p.XAdd(ctx, &goredis.XAddArgs{Stream: "stream", Values: []string{"a", "b"}})
	_, _ = p.Exec(ctx)
}

// churnUntilReadOnly changes keys, and charges a quarter of the limiters, until the engine is a
// replica.
func churnUntilReadOnly(old *storetest.Node, from int, limiters *tats) {
	o := old.ClientOptions()
	o.ReadTimeout = time.Minute
	c := goredis.NewClient(o)
	defer c.Close() //nolint:errcheck // nothing is sent any more
	ctx := context.Background()
	for r := rand.New(rand.NewPCG(1, uint64(from))); ; {
		i := r.IntN(50)*4 + from
		if err := c.Do(ctx, "CL.THROTTLE", fmt.Sprint("cell:", i), charge).Err(); err != nil {
			return // READONLY, because it is a replica now
		}
		limiters.charged[i]++
		k := r.IntN(200)
		for _, words := range [][]any{
			{"INCR", fmt.Sprint("n:", k)},
			{"SET", fmt.Sprint("s:", k), k, "PX", 3_600_000},
			{"LPOP", fmt.Sprint("l:", k%20)},
			{"RPUSH", fmt.Sprint("l:", k%20), k},
			{"SPOP", fmt.Sprint("set:", k%20)},
			{"ZINCRBY", fmt.Sprint("z:", k%20), 1, k},
			{"HDEL", fmt.Sprint("h:", k%20), k},
			{"EXPIRE", fmt.Sprint("s:", k), 5000},
		} {
			if c.Do(ctx, words...).Err() != nil && words[0] == "INCR" {
				return
			}
		}
		_, _ = c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			p.Incr(ctx, "tx")
			p.HSet(ctx, "tx:h", k, k)
			return nil
		})
	}
}

// requireSameKeys compares two servers in database 0. want may have streams, which got never has.
func requireSameKeys(t *testing.T, want, got *goredis.Client) {
	t.Helper()
	ctx := context.Background()
	all := func(c *goredis.Client) map[string]string {
		keys, err := c.Keys(ctx, "*").Result()
		require.NoError(t, err)
		held := map[string]string{}
		for _, k := range keys {
			if text := held1(t, c, k); text != "" {
				held[k] = text
			}
		}
		return held
	}
	a, b := all(want), all(got)
	require.Greater(t, len(a), 300)
	require.Equal(t, a, b)
}

// held1 returns the value of a key and its expiry. It omits the expiry of limiters, which live to
// their TAT here.
func held1(t *testing.T, c *goredis.Client, k string) string {
	t.Helper()
	ctx := context.Background()
	kind := c.Type(ctx, k).Val()
	var value any
	switch kind {
	case "string":
		value = c.Get(ctx, k).Val()
	case "list":
		value = c.LRange(ctx, k, 0, -1).Val()
	case "set":
		all := c.SMembers(ctx, k).Val()
		slices.Sort(all)
		value = all
	case "hash":
		value = c.HGetAll(ctx, k).Val()
	case "zset":
		value = c.ZRangeWithScores(ctx, k, 0, -1).Val()
	default:
		return ""
	}
	if strings.HasPrefix(k, "cell:") || strings.HasPrefix(k, "limit:") {
		return fmt.Sprint(kind, " ", value)
	}
	return fmt.Sprint(kind, " ", value, " until ", c.PExpireTime(ctx, k).Val())
}
