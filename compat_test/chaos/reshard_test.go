package chaos_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// clientOf returns a client of all nodes of a cluster.
func clientOf(t *testing.T, c *storetest.Cluster) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for _, n := range c.Nodes() {
		if n.Alive() {
			addrs = append(addrs, n.Front)
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestReshardingLosesAndChargesNothing moves every slot of a cluster to another master while
// four servers use it, and has all nodes forget all scripts again and again: no call fails,
// and what is stored is what was admitted.
func TestReshardingLosesAndChargesNothing(t *testing.T) {
	skipShort(t)
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		c := e.Cluster(t, 3, 0, storetest.Options{})
		l := newLoad(t, scaled(10, 50))
		var stores []*remote.Store
		for i := range 4 {
			// A busy machine is no reason for an answer of the policy here.
			s := open(t, remote.Options{URL: c.URL(), Timeout: 10 * time.Second})
			stores = append(stores, s)
			l.call(i, s)
		}
		l.awaitBegin()
		flush := every(100*time.Millisecond, func() { _ = c.FlushScripts() }) // at the end there is none
		time.Sleep(time.Second)                                               // the calm to compare with
		began := time.Since(l.began)
		rounds := scaled(1, 5)
		for range rounds {
			// Each part is moved away before the next comes in its place.
			for i, from := range c.Masters {
				to := c.Masters[(i+1)%len(c.Masters)]
				c.MoveSlots(from, to, i*storetest.Slots/3, (i+1)*storetest.Slots/3-1)
			}
			c.Masters = append(c.Masters[1:], c.Masters[0])
		}
		ended := time.Since(l.began)
		flush()
		settle(t, l, stores)
		total := l.total()
		require.Zero(t, total.failed)
		require.Zero(t, total.refused)
		var sum int64
		for key, is := range l.charges(clientOf(t, c), stores[0].Now()) {
			require.Equal(t, l.told[key].admitted, is, key)
			sum += is
		}
		t.Logf("%d slots moved in %s: %d calls, %d admitted, %d charged, 0 failed; p99 %s before, %s meanwhile", rounds*storetest.Slots,
			(ended - began).Round(time.Millisecond), len(l.calls), total.admitted, sum, l.slowest(0, began), l.slowest(began, ended))
	})
}
