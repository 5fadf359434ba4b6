package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// lag is by how much replicas are behind their masters.
const lag = 200 * time.Millisecond

// TestKilledMastersLoseNoMoreThanTheirReplicasLack kills one master after another, while its
// replica is 200 ms behind. What is lost of any key is at most what was admitted in the time
// that the replica lacks, and next to nothing where a server remembers the key.
func TestKilledMastersLoseNoMoreThanTheirReplicasLack(t *testing.T) {
	skipShort(t)
	e := storetest.Best(t)
	fronts := map[string]*front{} // by the node's own address
	c := e.Cluster(t, 3, 3, storetest.Options{Front: func(addr string) string {
		f := newFront(t, addr)
		fronts[addr] = f
		return f.addr
	}})
	var stores []*remote.Store
	l := newLoad(t, 3)
	for i := range 4 {
		s := open(t, remote.Options{URL: c.URL()})
		stores = append(stores, s)
		l.call(i, s)
	}
	l.awaitBegin()
	client := clientOf(t, c)
	var kills []time.Duration // since the load began
	var away []time.Duration
	for range scaled(2, 50) {
		old, next := followed(c, len(kills))
		holdReplicas(t, fronts[old.Addr], old, next, lag)
		time.Sleep(lasts(time.Second, 2*time.Second)) // under load, with the lag
		fronts[old.Addr].refuse()                     // with it goes what was held back
		kills = append(kills, time.Since(l.began))
		old.Kill()
		require.Same(t, next, c.AwaitFailover(old))
		storetest.Await(t, "the stores go on", func() error {
			for _, key := range l.keys {
				if a := submit(stores[0], look(key)); a.Err != nil {
					return a.Err
				}
			}
			return nil
		})
		away = append(away, time.Since(l.began)-kills[len(kills)-1])
		fronts[old.Addr].heal()
		fronts[old.Addr].accept()
		old.Restart()
		c.AwaitServing()
		old.AwaitLink()
	}
	settle(t, l, stores)
	total := l.total()
	var sum, lost, raced int64
	for key, is := range l.charges(client, stores[0].Now()) {
		told := l.told[key]
		lacking := int64(0)
		for _, at := range kills {
			lacking += l.admittedIn(key, at-lag-lag/2, at) // a busy machine is later
		}
		require.GreaterOrEqual(t, is, told.admitted-lacking, "%s: lost is at most what the replica lacked", key)
		require.LessOrEqual(t, is, told.admitted+told.failed, key)
		sum += is
		lost += max(0, told.admitted-is)
		raced += lacking
	}
	slices.Sort(away)
	t.Logf("%d kills: %d admitted, %d charged, %d lost of %d that replicas lacked, %d failed; repaired %d; away %s to %s", len(kills),
		total.admitted, sum, lost, raced, total.failed, figures(t, stores, "repaired"), away[0].Round(time.Millisecond), away[len(away)-1].Round(time.Millisecond))
	require.Positive(t, raced, "the lag held charges back")
	require.Less(t, lost, raced/4+100, "servers repair what they remember")
}

// followed returns a master that a replica follows, and that replica; another one each time.
func followed(c *storetest.Cluster, turn int) (master, replica *storetest.Node) {
	i := turn % len(c.Masters)
	if c.Masters[i].Role() == "master" {
		return c.Masters[i], c.Replicas[i]
	}
	return c.Replicas[i], c.Masters[i]
}
