package inproc

import (
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// AwaitLink returns when n is a replica of primary and has its state. It fails the test after a
// minute.
func (n *Node) AwaitLink(primary *Node) {
	n.world.t.Helper()
	n.world.Until("the link is up", 3*time.Millisecond, time.Minute, func() bool {
		is := n.Replication()
		return is["master_host"] == primary.Host && is["master_link_status"] == "up"
	})
}

// HandOver makes the primary n hand over to next, and returns when the roles have changed.
func (n *Node) HandOver(next *Node) {
	n.world.t.Helper()
	c := n.Dial()
	defer c.Close()
	n.world.Until("the target is a replica", 3*time.Millisecond, time.Minute, func() bool {
		return c.Do("FAILOVER", "TO", next.Host, strconv.Itoa(Port), "TIMEOUT", "30000") == OK
	})
	n.world.Until("the roles have changed", 3*time.Millisecond, time.Minute, func() bool {
		return next.Replication()["role"] == "master" && n.Replication()["master_failover_state"] == "no-failover"
	})
}

// Promote makes n a primary, and returns when it is one.
func (n *Node) Promote() {
	n.world.t.Helper()
	c := n.Dial()
	defer c.Close()
	require.Equal(n.world.t, OK, c.Do("REPLICAOF", "NO", "ONE"))
	n.world.Until("it is a primary", 3*time.Millisecond, time.Minute, func() bool {
		return strings.HasPrefix(c.Do("ROLE"), "*3\r\n$6\r\nmaster")
	})
}

// Syncs returns the numbers of full and of partial resynchronizations that n has served.
func (n *Node) Syncs() (full, partial int64) {
	counts := n.Engine().Options.Node.Counts()
	return counts.SyncFull, counts.SyncPartialOK
}
