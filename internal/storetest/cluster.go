package storetest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// Slots is the number of slots of a cluster.
const Slots = 16384

// Cluster is a cluster of nodes. Masters have equal shares of the slots, in the order of Masters.
type Cluster struct {
	Masters, Replicas []*Node // the roles at the start; Replicas[i] copies Masters[i%len(Masters)]
	t                 testing.TB
	engine            Engine
	options           Options
}

// Cluster starts a cluster with the given numbers of masters and, in total, of replicas. It returns
// when every node knows all others and serves.
func (e Engine) Cluster(t testing.TB, masters, replicas int, o Options) *Cluster {
	t.Helper()
	if o.NodeTimeout == 0 {
		o.NodeTimeout = 2 * time.Second
	}
	c := &Cluster{t: t, engine: e, options: o}
	for i := range masters + replicas {
		n := c.start(i)
		if i < masters {
			c.Masters = append(c.Masters, n)
		} else {
			c.Replicas = append(c.Replicas, n)
		}
	}
	c.meet()
	for i, n := range c.Masters {
		n.Do("CLUSTER", "ADDSLOTSRANGE", i*Slots/masters, (i+1)*Slots/masters-1)
	}
	for i, n := range c.Replicas {
		n.replicate(c.Masters[i%masters])
	}
	c.AwaitServing()
	for _, n := range c.Replicas {
		n.AwaitLink()
	}
	return c
}

// start starts the node with the given number, which is not connected to other nodes yet.
func (c *Cluster) start(number int) *Node {
	c.t.Helper()
	// By default, the ports of the cluster bus are 10,000 above the others. Those would be in the
	// range from which systems choose ports of clients.
	bus := freeport.Choose()
	o := c.options
	o.Args = append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", milliseconds(o.NodeTimeout), "--cluster-port", bus,
		"--cluster-announce-bus-port", bus, "--cluster-announce-ip", "127.0.0.1",
		// Some tests need a replica that takes over however old its data is.
		"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
	}, o.Args...)
	if o.Password != "" {
		o.Args = append(o.Args, "--masterauth", o.Password)
	}
	n := c.engine.node(c.t, o)
	if n.Front != n.Addr {
		_, port, err := net.SplitHostPort(n.Front)
		require.NoError(c.t, err)
		name := "cluster-announce-port"
		if o.TLS != nil {
			name = "cluster-announce-tls-port"
		}
		n.Do("CONFIG", "SET", name, port)
		n.args = append(n.args, "--"+name, port)
	}
	n.Do("CLUSTER", "SET-CONFIG-EPOCH", number+1)
	return n
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// meet introduces all nodes to each other, until each knows all others. On a busy machine a node
// may not answer within the node timeout, and is forgotten; the two nodes are then introduced
// again.
func (c *Cluster) meet() {
	c.t.Helper()
	buses := map[*Node]string{}
	for _, n := range c.Nodes() {
		buses[n] = n.Do("CONFIG", "GET", "cluster-port").([]any)[1].(string)
	}
	Await(c.t, "all nodes meet", func() error {
		pending := 0
		for _, n := range c.Nodes() {
			pending += n.introduce(buses)
		}
		if pending > 0 {
			return fmt.Errorf("%d introductions are pending", pending)
		}
		return nil
	})
}

// introduce makes n meet the nodes that it does not know, and returns the number of introductions
// that are not complete. buses has the bus ports of all nodes.
func (n *Node) introduce(buses map[*Node]string) (pending int) {
	n.t.Helper()
	known := n.Do("CLUSTER", "NODES").(string)
	pending = strings.Count(known, "handshake")
	for other, bus := range buses {
		if strings.Contains(known, "@"+bus+" ") || strings.Contains(known, "@"+bus+",") {
			continue
		}
		host, port, err := net.SplitHostPort(other.Addr)
		require.NoError(n.t, err)
		n.Do("CLUSTER", "MEET", host, port, bus)
		pending++
	}
	return pending
}

// replicate makes n a replica of master, when n knows master.
func (n *Node) replicate(master *Node) {
	n.t.Helper()
	id := master.ID()
	Await(n.t, n.Addr+" becomes a replica", func() error {
		return n.Client.Do(n.t.Context(), "CLUSTER", "REPLICATE", id).Err()
	})
}

// ID returns the ID of the node in the cluster.
func (n *Node) ID() string {
	n.t.Helper()
	return n.Do("CLUSTER", "MYID").(string)
}

// Nodes returns all nodes with which the cluster was started, also those that do not run.
func (c *Cluster) Nodes() []*Node { return slices.Concat(c.Masters, c.Replicas) }

// URL returns the URL for the option store, with the fronts of all nodes.
func (c *Cluster) URL() string {
	var addrs []string
	for _, n := range c.Nodes() {
		addrs = append(addrs, n.Front)
	}
	return storeURL(c.engine, c.options, addrs...)
}

// AwaitServing returns when every running node knows all others and has a master for every slot.
func (c *Cluster) AwaitServing() {
	c.t.Helper()
	for _, n := range c.Nodes() {
		if !n.Alive() {
			continue
		}
		Await(c.t, n.Addr+" serves in the cluster", func() error {
			text, err := n.Client.ClusterInfo(c.t.Context()).Result()
			if err != nil {
				return err
			}
			for _, field := range []string{"cluster_state:ok", "cluster_slots_ok:16384", fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes()))} {
				if !strings.Contains(text, field) {
					return errors.New(text)
				}
			}
			return nil
		})
	}
}

// AwaitFailover returns when a replica has taken over for old, a node that was killed, paused or
// cut off, and all running nodes know that. It returns the new master.
func (c *Cluster) AwaitFailover(old *Node) *Node {
	c.t.Helper()
	place := slices.Index(c.Masters, old)
	if place < 0 {
		place = slices.Index(c.Replicas, old)
	}
	var taken *Node
	Await(c.t, "a replica takes over for "+old.Addr, func() error {
		for _, n := range c.Nodes() {
			same := place%len(c.Masters) == c.place(n)%len(c.Masters)
			if n != old && same && n.Alive() && n.Role() == "master" {
				taken = n
				return nil
			}
		}
		return errors.New("no replica has")
	})
	c.AwaitServing()
	return taken
}

// place returns the index of n among the masters or the replicas, or -1 if n is not a node of the
// cluster. Nodes whose indexes are equal modulo the number of masters have the same slots.
func (c *Cluster) place(n *Node) int {
	if i := slices.Index(c.Masters, n); i >= 0 {
		return i
	}
	return slices.Index(c.Replicas, n)
}
