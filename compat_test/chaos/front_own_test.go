package chaos_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// through returns a client of a node by way of its front.
func through(t *testing.T, f *front, node *storetest.Node) *redis.Client {
	t.Helper()
	o := node.ClientOptions()
	o.Addr, o.PoolSize = f.addr, 1
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestFrontsHarmConnections tests that each toxin does what it says, and that a healed
// front does nothing.
func TestFrontsHarmConnections(t *testing.T) {
	node := storetest.Best(t).Single(t, storetest.Options{})
	f := newFront(t, node.Addr)
	c := through(t, f, node)
	// incr counts in the node, and silent does so where no reply will come: it gives up after a
	// while, which is long enough for the node.
	incrWithin := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.Incr(ctx, "n").Err()
	}
	incr := func() error { return incrWithin(storetest.Patience) }
	silent := func() error { return incrWithin(time.Second) }
	stored := func() int {
		n, err := node.Client.Get(t.Context(), "n").Int()
		require.NoError(t, err)
		return n
	}
	require.NoError(t, incr())
	require.Equal(t, 1, stored())

	f.add(blackHole)
	require.Error(t, silent())
	require.Equal(t, 2, stored(), "what is asked for is done")
	f.heal()
	f.add(deaf)
	require.Error(t, silent())
	require.Equal(t, 2, stored(), "the node hears nothing")
	f.heal()

	require.NoError(t, incr())
	f.add(cut(1))
	require.Error(t, incr())
	require.Equal(t, 4, stored(), "the reply alone is lost")
	f.heal()
	f.add(reset(1))
	require.Error(t, incr())
	f.heal()
	f.add(slow(20, 0))
	began := time.Now()
	require.NoError(t, incr())
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
	f.heal()

	f.refuse()
	require.Error(t, incr())
	f.accept()
	storetest.Await(t, "connections are taken again", incr)
	other := storetest.Best(t).Single(t, storetest.Options{})
	f.lead(other.Addr)
	storetest.Await(t, "the client reaches the other node", func() error { return c.Set(t.Context(), "other", 1, 0).Err() })
	require.Equal(t, "1", other.Do("GET", "other"))
}

// TestHeldReplicationIsLostWithTheMaster tests that a replica behind a front that holds has
// what is old, and not what came last.
func TestHeldReplicationIsLostWithTheMaster(t *testing.T) {
	e := storetest.Best(t)
	master := e.Single(t, storetest.Options{})
	f := newFront(t, master.Addr)
	replica := e.Replica(t, storetest.Options{}, master, f.addr)
	master.Do("SET", "early", 1)
	storetest.Await(t, "the replica follows", func() error { return replica.Client.Get(t.Context(), "early").Err() })
	holdReplicas(t, f, master, replica, time.Minute)
	c := through(t, f, master)
	require.NoError(t, c.Set(t.Context(), "late", 1, 0).Err(), "clients are not held back")
	f.refuse()
	master.Kill()
	replica.Do("REPLICAOF", "NO", "ONE")
	require.Equal(t, "1", replica.Do("GET", "early"))
	require.ErrorIs(t, replica.Client.Get(t.Context(), "late").Err(), redis.Nil)
}

// holdReplicas has what master tells replica come late from now on.
func holdReplicas(t *testing.T, f *front, master, replica *storetest.Node, late time.Duration) {
	t.Helper()
	f.add(hold(int(late.Milliseconds())))
	before := master.Do("CLIENT", "LIST", "TYPE", "replica")
	master.Do("CLIENT", "KILL", "TYPE", "replica")
	storetest.Await(t, "the replica follows again", func() error {
		id, _, _ := strings.Cut(master.Do("CLIENT", "LIST", "TYPE", "replica").(string), " ")
		if id == "" || strings.HasPrefix(before.(string), id+" ") {
			return errors.New("it does not")
		}
		return nil
	})
	replica.AwaitLink()
}
