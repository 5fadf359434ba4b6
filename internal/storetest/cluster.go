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

// Slots is how many a cluster has.
const Slots = 16384

// Cluster is a cluster of nodes. The slots are dealt out evenly to Masters, in their order.
type Cluster struct {
	Masters, Replicas []*Node // as they were at the start; Replicas[i] copies Masters[i%len]
	t                 testing.TB
	engine            Engine
	options           Options
}

// Cluster starts masters, and replicas in all, and returns when every node knows every
// other and serves.
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

// start starts the node of a number, which is in a cluster of its own.
func (c *Cluster) start(number int) *Node {
	c.t.Helper()
	// Ports of the bus are 10,000 above the others by default, where systems choose those of
	// clients from.
	bus := freeport.Choose()
	o := c.options
	o.Args = append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", milliseconds(o.NodeTimeout), "--cluster-port", bus,
		"--cluster-announce-bus-port", bus, "--cluster-announce-ip", "127.0.0.1",
		// A replica takes over however old its data is: whoever tests with old data wants that.
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

// meet introduces all nodes to each other, until each knows all. A node forgets another that
// does not answer within the node timeout, as on a busy machine: they meet again.
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

// introduce has n meet those whom it does not know, and returns how many introductions have not
// come to an end. buses are the ports by which nodes are known to each other.
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

// replicate makes n a replica of master as soon as it knows it.
func (n *Node) replicate(master *Node) {
	n.t.Helper()
	id := master.ID()
	Await(n.t, n.Addr+" becomes a replica", func() error {
		return n.Client.Do(n.t.Context(), "CLUSTER", "REPLICATE", id).Err()
	})
}

// ID is what a cluster calls the node.
func (n *Node) ID() string {
	n.t.Helper()
	return n.Do("CLUSTER", "MYID").(string)
}

// Nodes are all that the cluster was started with.
func (c *Cluster) Nodes() []*Node { return slices.Concat(c.Masters, c.Replicas) }

// URL names all nodes as --store takes it.
func (c *Cluster) URL() string {
	var addrs []string
	for _, n := range c.Nodes() {
		addrs = append(addrs, n.Front)
	}
	return storeURL(c.engine, c.options, addrs...)
}

// AwaitServing returns when every node that runs knows all others and has a master for
// every slot.
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

// AwaitFailover returns when a replica has taken over for a node that was killed, paused or
// cut off, and all others that run know. It returns the new master.
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

// place is the number of a node among masters or replicas: those of one number, modulo the
// masters, keep the same slots.
func (c *Cluster) place(n *Node) int {
	if i := slices.Index(c.Masters, n); i >= 0 {
		return i
	}
	return slices.Index(c.Replicas, n)
}
