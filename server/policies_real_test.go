//go:build real

package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
)

// TestBlocksReachOtherServers measures the time from RL.BLOCK on one server to a denial on another: with a user of the
// store that may subscribe, and with one that may not.
func TestBlocksReachOtherServers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		node := e.Single(t, storetest.Options{})
		node.Do("ACL", "SETUSER", "cut", "on", ">secret", "~*", "resetchannels", "+@all")
		_, addr, _ := strings.Cut(node.URL(), "://")
		for name, test := range map[string]struct {
			url     string
			changes int
			apart   time.Duration // the longest time between a denial and the next change
		}{
			"subscribed": {node.URL(), 200, 50 * time.Millisecond},
			"asking":     {"redis://cut:secret@" + addr, 5, time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				var clients []*inproc.Client
				for range 2 {
					c := inproc.ServeTimed(t, "auto", "--store", test.url, "--store-timeout", "5000").Dial()
					inproc.Await(t, "the policies", func() bool { return c.Info("store_policies_age_ms") != "-1" })
					clients = append(clients, c)
				}
				one, other := clients[0], clients[1]
				if name == "subscribed" {
					inproc.Await(t, "a subscription", func() bool { return other.Info("store_policies_subscribed") == "1" })
				}
				require.Equal(t, inproc.OK, one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "1000000", "60"))
				inproc.Await(t, "the policy", func() bool { return strings.HasPrefix(other.Do("RL.USE", "api", "k"), "*5\r\n:0\r\n") })
				var took []time.Duration
				for i := range test.changes {
					key := fmt.Sprint(name, i)
					time.Sleep(rand.N(test.apart))
					start := time.Now()
					require.Equal(t, inproc.OK, one.Do("RL.BLOCK", "api", key))
					inproc.Await(t, "a denial", func() bool { return strings.HasPrefix(other.Do("RL.USE", "api", key), "*5\r\n:1\r\n") })
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				t.Logf("median %v, maximum %v of %d changes", took[len(took)/2], took[len(took)-1], len(took))
				require.Less(t, took[len(took)/2], inForce)
				require.Equal(t, name == "subscribed", other.Info("store_policies_subscribed") == "1")
			})
		}
	})
}

// TestABlockWaitsForAReplica: a replica confirms a block, and its pause is noticed.
func TestABlockWaitsForAReplica(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		node := e.Single(t, storetest.Options{})
		c := inproc.ServeTimed(t, "auto", "--store", node.URL(), "--store-timeout", "5000").Dial()
		inproc.Await(t, "the policies", func() bool { return c.Info("store_policies_age_ms") != "-1" })
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "10", "60"))
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "a"), "there is no replica")
		replica := e.Replica(t, storetest.Options{}, node, "")
		inproc.Await(t, "a replica that confirms", func() bool { return c.Do("RL.BLOCK", "api", "a") == inproc.OK })
		before, err := strconv.Atoi(c.Info("store_changes_unconfirmed"))
		require.NoError(t, err)
		replica.Pause()
		for i := range 3 {
			start := time.Now()
			require.Equal(t, "-UNCONFIRMED The change is in force, but no replica of the store has confirmed it: a failover may lose it\r\n",
				c.Do("RL.BLOCK", "api", fmt.Sprint("b", i)))
			require.GreaterOrEqual(t, time.Since(start), 490*time.Millisecond)
			require.True(t, strings.HasPrefix(c.Do("RL.USE", "api", fmt.Sprint("b", i)), "*5\r\n:1\r\n"), "it is in force")
		}
		require.Equal(t, strconv.Itoa(before+3), c.Info("store_changes_unconfirmed"))
		require.Equal(t, inproc.OK, c.Do("RL.OVERRIDE", "SET", "api", "x", "LIMITS", "SW", "5", "60"), "it does not wait")
		replica.Resume()
		inproc.Await(t, "a replica that confirms", func() bool { return c.Do("RL.BLOCK", "api", "a") == inproc.OK })
		replica.Kill()
		inproc.Await(t, "no replica", func() bool { return node.Info("replication")["connected_slaves"] == "0" })
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "c"))
	})
}
