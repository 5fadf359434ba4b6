package replication_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/slidingwindow"
)

// change makes a random change to keys of all kinds.
func change(t *testing.T, rng *rand.Rand, v *keyspace.Handle) {
	db, n := rng.IntN(2), strconv.Itoa(rng.IntN(40))
	value := make([]byte, rng.IntN(200))
	switch rng.IntN(12) {
	case 0, 1:
		o := keyspace.SetOptions{Expiry: entry.NoExpiry}
		if rng.IntN(2) == 0 {
			o.Expiry = v.Now().Add(time.Duration(rng.IntN(100)) * []time.Duration{time.Millisecond, time.Hour}[rng.IntN(2)])
		}
		_, err := v.SetString(db, []byte("s"+n), value, o)
		require.NoError(t, err)
	case 2:
		_, err := v.AddInt(db, []byte("i"+n), int64(rng.IntN(9)))
		require.NoError(t, err)
	case 3:
		v.Delete(db, []byte("s"+n))
	case 4, 5:
		require.NoError(t, v.WriteList(db, []byte("l"+n), func(l *collection.List) error { return l.PushBack(value) }))
	case 6, 7:
		require.NoError(t, v.WriteHash(db, []byte("h"+n), func(h *collection.Hash) error {
			_, err := h.Set(fmt.Append(nil, rng.IntN(300)), value)
			return err
		}))
	case 8:
		q, err := gcra.NewQuota(15, 30, 60)
		require.NoError(t, err)
		_, err = asks.Throttle(v, db, []byte("t"+n), &q, 1)
		require.NoError(t, err)
	case 9:
		c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 20, Window: time.Hour, Quantity: 1}
		_, err := asks.Allow(v, db, []byte("w"+n), &c)
		require.NoError(t, err)
	case 10:
		key := []byte("l" + n)
		v.Lock([]keyspace.Ref{{DB: db, Key: key}, {DB: db, Key: []byte("s" + n)}})
		v.Delete(db, key)
		_, err := v.SetString(db, []byte("s"+n), value, keyspace.SetOptions{Expiry: entry.NoExpiry})
		require.NoError(t, err)
		v.Unlock()
	case 11:
		if rng.IntN(200) == 0 {
			v.Flush(db)
		}
	}
}

// load starts clients that change keys on all nodes, where that is not refused. end stops them.
func load(t *testing.T, nodes ...*member) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range nodes {
		c, rng := p.client(), rand.New(rand.NewPCG(uint64(i), 7))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !c.do(func(v *keyspace.Handle) { change(t, rng, v) }) || rng.IntN(16) == 0 {
					time.Sleep(101 * time.Microsecond) // without a sleep, no time passes
				}
			}
		})
	}
	return func() { close(stop); all.Wait() }
}

// TestChurn changes keys while links are cut and roles change. In the end all nodes must have
// equal keys.
func TestChurn(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for seed := range uint64(2) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				w := newWeb(t)
				nodes := []*member{w.start("a:1", 0), w.start("b:2", time.Minute), w.start("c:3", -time.Minute)}
				lead := 0
				others := func() []*member { return []*member{nodes[(lead+1)%3], nodes[(lead+2)%3]} }
				arrange := func() {
					nodes[lead].node.Promote(nil)
					nodes[lead].awaitPrimary()
					first, second := others()[0], others()[1]
					first.follow(nodes[lead])
					if rng.IntN(2) == 0 {
						second.follow(nodes[lead])
					} else {
						second.follow(first)
					}
				}
				arrange()
				end := load(t, nodes...)
				for range rounds {
					switch rng.IntN(5) {
					case 0, 1, 2:
						w.cut(nodes[rng.IntN(3)].address)
					case 3:
						lead = rng.IntN(3)
						arrange()
					case 4:
						for _, p := range others() {
							p.awaitUp()
						}
						if nodes[lead].node.Failover(protocol.Failover{Host: others()[0].address[:1], Port: strconv.Itoa(others()[0].port)}) == "" {
							others()[0].awaitPrimary()
							nodes[lead].awaitField("master_failover_state", "no-failover")
							lead = (lead + 1) % 3
							arrange()
						}
					}
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // let something happen meanwhile
				}
				end()
				arrange()
				awaitEqual(t, nodes[lead], others()...)
			})
		})
	}
}

// TestAcknowledgedSurvives promotes the replica at any moment. It must have everything that it
// has acknowledged.
func TestAcknowledgedSurvives(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for range 10 {
			w := newWeb(t)
			a, b := w.start("a:1", 0), w.start("b:2", 0)
			b.follow(a)
			b.awaitUp()
			c := a.client()
			acked := 0
			for i := 1; i <= 50; i++ {
				var position uint64
				require.True(t, c.do(func(v *keyspace.Handle) {
					_, err := v.AddInt(0, []byte("n"), 1)
					require.NoError(t, err)
				}))
				position = a.keeper.log.Position()
				if i%10 == 0 {
					eventually(t, "acknowledged", func() bool { return a.node.Acked(position) == 1 })
					acked = i
				}
			}
			w.isolate(a.address, true)
			b.node.Promote(nil)
			b.awaitPrimary()
			value, _, err := b.ks.NewHandle().AppendString(nil, 0, []byte("n"))
			require.NoError(t, err)
			n, err := strconv.Atoi(string(value))
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, acked)
		}
	})
}
