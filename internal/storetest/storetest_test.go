//go:build real

package storetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/storetest"
)

// TestNodesStartWithPasswordUsersAndTLS tests the options of a single node.
func TestNodesStartWithPasswordUsersAndTLS(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		n := e.Single(t, storetest.Options{
			Users: []string{"user default on >secret ~* &* +@all", "user limiter on >other ~cs:* +get"},
			TLS:   storetest.NewCertificates(t), Password: "secret",
			Args: []string{"--maxmemory", "5mb", "--maxmemory-policy", "noeviction"},
		})
		require.Equal(t, "master", n.Role())
		require.Contains(t, n.URL(), "s://:secret@127.0.0.1:")
		require.Equal(t, "5242880", n.Info("memory")["maxmemory"])

		o := n.ClientOptions()
		o.Username, o.Password = "limiter", "other"
		limiter := redis.NewClient(o)
		defer func() { _ = limiter.Close() }()
		require.ErrorIs(t, limiter.Get(t.Context(), "cs:a").Err(), redis.Nil)
		require.ErrorContains(t, limiter.Get(t.Context(), "a").Err(), "NOPERM")
		require.ErrorContains(t, limiter.Set(t.Context(), "cs:a", 1, 0).Err(), "NOPERM")
		o.TLSConfig, o.DialTimeout, o.ReadTimeout = nil, time.Second, time.Second
		plain := redis.NewClient(o)
		defer func() { _ = plain.Close() }()
		require.Error(t, plain.Ping(t.Context()).Err(), "it takes no client without TLS")
	})
}

// TestNodesAreKilledPausedAndRestarted tests these methods, and that a killed node loses its keys.
func TestNodesAreKilledPausedAndRestarted(t *testing.T) {
	n := storetest.Redis(t).Single(t, storetest.Options{})
	n.Do("SET", "a", "1")
	n.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, n.Client.Ping(ctx).Err())
	n.Resume()
	n.AwaitReady()
	require.Equal(t, "1", n.Do("GET", "a"))
	n.Kill()
	require.False(t, n.Alive())
	require.Error(t, n.Client.Ping(t.Context()).Err())
	n.Start()
	n.AwaitReady()
	require.ErrorIs(t, n.Client.Get(t.Context(), "a").Err(), redis.Nil)
}

// TestClusterMovesSlotsAndFailsOver tests that keys survive moving all slots of a master, and the
// death of a master.
func TestClusterMovesSlotsAndFailsOver(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		t.Parallel()
		// No replica may take over while slots move, however busy the machine is.
		c := e.Cluster(t, 3, 3, storetest.Options{Password: "secret", NodeTimeout: 4 * time.Second})
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{c.Masters[1].Addr}, Password: "secret", MaxRedirects: 8,
		})
		defer func() { _ = client.Close() }()
		keys := strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")
		for _, k := range keys {
			require.NoError(t, client.Set(t.Context(), k, k, 0).Err())
		}
		require.NotNil(t, c.Owner(0))
		half := storetest.Slots/6 - 1
		c.MoveSlots(c.Masters[0], c.Masters[2], 0, half)
		require.NoError(t, c.FlushScripts())
		require.Same(t, c.Masters[2], c.Owner(half))
		require.Same(t, c.Masters[0], c.Owner(half+1))

		gone := c.Masters[2]
		Replicated(t, c.Replicas[2], gone)
		gone.Kill()
		require.Same(t, c.Replicas[2], c.AwaitFailover(gone))
		after := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Masters[1].Addr}, Password: "secret"})
		defer func() { _ = after.Close() }()
		for _, k := range keys {
			v, err := after.Get(t.Context(), k).Result()
			require.NoError(t, err, k)
			require.Equal(t, k, v)
		}
		gone.Restart()
		c.AwaitServing()
		storetest.Await(t, "the killed master becomes a replica", func() error {
			if role := gone.Role(); role != "slave" {
				return errors.New(role)
			}
			return nil
		})
	})
}

// Replicated waits until replica has the offset of master.
func Replicated(t *testing.T, replica, master *storetest.Node) {
	storetest.Await(t, "the replica catches up", func() error {
		if replica.Info("replication")["slave_repl_offset"] != master.Info("replication")["master_repl_offset"] {
			return errors.New("it is behind")
		}
		return nil
	})
}

// TestClusterNamesItsFronts tests that a cluster redirects clients to the announced addresses of
// its nodes.
func TestClusterNamesItsFronts(t *testing.T) {
	fronts := map[string]string{}
	c := storetest.Redis(t).Cluster(t, 3, 0, storetest.Options{Front: func(addr string) string {
		fronts[addr] = "127.0.0.1:" + freeport.Choose()
		return fronts[addr]
	}})
	for _, n := range c.Nodes() {
		served := n.Served()
		for i, m := range c.Masters {
			require.Equal(t, fronts[m.Addr], served[i*storetest.Slots/3])
			require.Contains(t, c.URL(), fronts[m.Addr])
		}
	}
	require.Len(t, fronts, 3)
}

// TestSentinelsFailOver tests that sentinels detect a killed master and promote a replica.
func TestSentinelsFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		t.Parallel()
		s := e.Sentinels(t, 1, storetest.Options{Password: "secret"})
		client := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: storetest.MasterName, SentinelAddrs: s.Addrs(), Password: "secret",
		})
		defer func() { _ = client.Close() }()
		require.NoError(t, client.Set(t.Context(), "a", "1", 0).Err())
		Replicated(t, s.Replicas[0], s.Master)
		s.Master.Kill()
		require.Same(t, s.Replicas[0], s.AwaitFailover(s.Master))
		storetest.Await(t, "the client finds it", func() error { return client.Get(t.Context(), "a").Err() })
	})
}
