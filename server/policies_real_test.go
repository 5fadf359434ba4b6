//go:build real

package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
