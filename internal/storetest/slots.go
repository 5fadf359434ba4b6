package storetest

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Owner returns the running node that serves slot.
func (c *Cluster) Owner(slot int) *Node {
	c.t.Helper()
	for _, n := range c.Nodes() {
		if !n.Alive() {
			continue
		}
		addr := n.Served()[slot]
		for _, owner := range c.Nodes() {
			if owner.Front == addr {
				return owner
			}
		}
		break
	}
	require.Fail(c.t, "nobody serves the slot", "%d", slot)
	return nil
}

// Served returns, for each slot, the address of the master that n reports. It is "" for a slot
// without a master.
func (n *Node) Served() (addrs [Slots]string) {
	n.t.Helper()
	for _, row := range n.Do("CLUSTER", "SLOTS").([]any) {
		r := row.([]any)
		master := r[2].([]any)
		addr := net.JoinHostPort(master[0].(string), fmt.Sprint(master[1]))
		for slot := r[0].(int64); slot <= r[1].(int64); slot++ {
			addrs[slot] = addr
		}
	}
	return addrs
}

// SlotOf returns the slot of key.
func (c *Cluster) SlotOf(key string) int {
	c.t.Helper()
	return int(c.Masters[0].Do("CLUSTER", "KEYSLOT", key).(int64))
}

// MoveSlots moves the slots from first to last, with their keys, from one master to another. It
// moves a few slots at a time, as a resharding does, while clients are redirected.
func (c *Cluster) MoveSlots(from, to *Node, first, last int) {
	c.t.Helper()
	const step = 64
	for ; first <= last; first += step {
		c.moveSome(from, to, first, min(last, first+step-1))
	}
}

func (c *Cluster) moveSome(from, to *Node, first, last int) {
	c.t.Helper()
	source, target := from.ID(), to.ID()
	c.setSlots(to, first, last, "IMPORTING", source)
	c.setSlots(from, first, last, "MIGRATING", target)
	for slot := first; slot <= last; slot++ {
		for c.moveKeys(from, to, slot) {
			continue
		}
	}
	c.setSlots(to, first, last, "NODE", target)
	c.setSlots(from, first, last, "NODE", target)
	for _, n := range c.Nodes() {
		if n != from && n != to && n.Alive() && n.Role() == "master" {
			c.setSlots(n, first, last, "NODE", target)
		}
	}
}

// setSlots runs CLUSTER SETSLOT on n for each slot from first to last. It tries again if a reply is
// late, or is NOREPLICAS: Valkey replies NOREPLICAS, and changes nothing, if a replica has not
// confirmed the command within two seconds, as on a busy machine.
func (c *Cluster) setSlots(n *Node, first, last int, state, id string) {
	c.t.Helper()
	what := fmt.Sprintf("%s of %d to %d at %s", state, first, last, n.Addr)
	Await(c.t, what, func() error {
		_, err := n.Client.Pipelined(c.t.Context(), func(p redis.Pipeliner) error {
			for slot := first; slot <= last; slot++ {
				p.Do(c.t.Context(), "CLUSTER", "SETSLOT", slot, state, id)
			}
			return nil
		})
		var late net.Error
		if redis.HasErrorPrefix(err, "NOREPLICAS") || errors.As(err, &late) && late.Timeout() {
			return err
		}
		require.NoError(c.t, err, what)
		return nil
	})
}

// moveKeys moves some keys of slot, and returns false when there are none left.
func (c *Cluster) moveKeys(from, to *Node, slot int) bool {
	c.t.Helper()
	const most = 100
	keys, err := from.Client.ClusterGetKeysInSlot(c.t.Context(), slot, most).Result()
	require.NoError(c.t, err)
	if len(keys) == 0 {
		return false
	}
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(c.t, err)
	words := []any{"MIGRATE", host, port, "", 0, Patience.Milliseconds()}
	if c.options.Password != "" {
		words = append(words, "AUTH", c.options.Password)
	}
	words = append(words, "KEYS")
	for _, k := range keys {
		words = append(words, k)
	}
	// Keys that have expired meanwhile are not moved; the reply is NOKEY if these are all.
	err = from.Client.Do(c.t.Context(), words...).Err()
	require.NoError(c.t, err, "moving %d keys of slot %d", len(keys), slot)
	return true
}

// FlushScripts makes all nodes remove all scripts. It ignores replicas that refuse the command.
func (c *Cluster) FlushScripts() error {
	for _, n := range c.Nodes() {
		if err := n.Client.ScriptFlush(c.t.Context()).Err(); err != nil && !strings.HasPrefix(err.Error(), "READONLY") {
			return fmt.Errorf("%s: %w", n.Addr, err)
		}
	}
	return nil
}
