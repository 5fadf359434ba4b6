package replication

import (
	"context"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// Node is a server as a part of replication: a primary, or a replica that follows one. It
// implements env.Node. Requests to change the role are left for [Node.Run], which must
// be running. Its other methods may be called from any goroutine and do not block.
type Node struct {
	o    Options
	f    *follower
	wake chan struct{} // room for one: Run has something to do

	// tap is where the log passes on what this node changes; nil on a replica, and on a
	// primary before its first replica.
	tap   atomic.Pointer[tap]
	freed atomic.Bool // the stream of a primary is not needed

	// What follows is for the goroutine of Run.
	fresh     bool     // nobody has a part of the history yet
	following bool     // what the node does, while replica below is what it was told to do
	log       Log      // nil until it is needed
	linkLoop  linkLoop // the goroutine that follows

	mu sync.Mutex // guards what follows
	roleState
	handover   handover
	promotions []func() // to call once the node leads, or has another order
	confirm    confirm
	late       []*latePump
}

// roleState is what a node was told to be and how far that is done.
type roleState struct {
	replica bool
	primary place  // which it is to follow; only of a replica
	order   order  // what Run has not done yet
	phase   string // one of the states of ROLE
	link    *link  // the present one, or nil
	// downSince is the reading at which the link went down, or the node began to follow.
	downSince   time.Duration
	wasUp       bool   // the link was up since the node began to follow
	bytesBefore int64  // that had come when the present sync began
	fault       string // why the last link ended
	refuses     bool   // it ended since the state of the primary was refused
}

// place is where a server listens.
type place struct{ host, port string }

func (p place) address() string { return net.JoinHostPort(p.host, p.port) }

// order is a change of role that was asked for.
type order uint8

const (
	orderNone order = iota
	orderReplicaOf
	orderPromote
)

// The states of a link, as ROLE names them.
const (
	phaseConnect    = "connect"
	phaseConnecting = "connecting"
	phaseSync       = "sync"
	phaseConnected  = "connected"
)

// handover is a FAILOVER, from this node to a replica.
type handover struct {
	state handoverState
	to    place // the target; empty while it may be any replica
	force bool
	until time.Duration // reading at which waiting ends; 0 is never
	abort string        // why it is to be given up, or empty
	began time.Duration // reading at which the target was first to be asked
	tried time.Duration // and at which the present attempt to ask it began
	asked bool          // the target may have been asked to take over, without an answer
	// askedAt is no later than the first time that it may have been.
	askedAt time.Duration
}

type handoverState uint8

const (
	handoverNone handoverState = iota
	handoverWaiting
	handoverUnderWay
)

// String returns the name that Redis gives the state.
func (s handoverState) String() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[s]
}

// linkLoop is the goroutine that follows a primary.
type linkLoop struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New makes a node: a primary without replicas, with a history of its own. The state of its
// keyspace must be loaded.
func New(o Options) *Node {
	if o.After == nil {
		o.After = time.After
	}
	n := &Node{o: o, wake: make(chan struct{}, 1), fresh: true}
	n.f = &follower{o: &n.o, received: o.Replica}
	n.f.whole.Store(true)
	o.Source.Begin(newHistory(), 0)
	return n
}

// newHistory returns one that continues none.
func newHistory() History { return History{ID: persistence.NewID(), Offset2: -1} }

// ReplicaOf implements env.Node. From its return on, commands that change something are
// refused.
func (n *Node) ReplicaOf(host, port string) {
	to := place{host, port}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.handover.state != handoverNone:
		n.o.Log.Warn("another primary is not followed during a failover", "primary", to.address())
		return
	case n.replica && n.primary == to && n.order != orderPromote:
		return
	}
	n.roleState = roleState{
		replica: true, primary: to, order: orderReplicaOf, phase: phaseConnect,
		link: n.link, downSince: n.o.Stopwatch(), wasUp: n.wasUp,
	}
	n.o.Host.SetReadOnly(true)
	n.confirmed()
	n.o.Host.SetPrimary(host, port)
	n.nudge()
}

// Promote implements env.Node. Commands that change something are refused until it is done.
func (n *Node) Promote(done func()) {
	if !n.requestPromotion(done) && done != nil {
		done()
	}
}

// requestPromotion leaves the request with Run, and reports whether there is anything to do.
func (n *Node) requestPromotion(done func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.handover.state != handoverNone:
		n.o.Log.Warn("the role is not changed during a failover")
		return false
	case !n.replica:
		return false
	}
	n.order = orderPromote
	n.o.Host.SetPrimary("", "")
	if done != nil {
		n.promotions = append(n.promotions, done)
	}
	n.nudge()
	return true
}

// endPromotions tells those that wait for the last order to lead, which has been carried out or replaced.
func (n *Node) endPromotions() {
	n.mu.Lock()
	leads := n.promotions
	n.promotions = nil
	n.mu.Unlock()
	for _, done := range leads {
		done()
	}
}

// nudge has Run look at what there is to do.
func (n *Node) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Acknowledge implements env.Node.
func (n *Node) Acknowledge(id int64, r protocol.Ack) {
	n.o.Source.Acknowledge(id, r)
	n.mu.Lock()
	waits := n.handover.state == handoverWaiting
	if id == n.confirm.client {
		n.confirmed()
	}
	n.mu.Unlock()
	if waits {
		n.nudge()
	}
}

// Await implements env.Node. Position is one of the log.
func (n *Node) Await(replicas int, position uint64, p transport.Peer) (int, transport.Outcome) {
	return n.o.Source.Await(replicas, n.offset(position), p)
}

// Counts implements env.Node.
func (n *Node) Counts() protocol.Counts {
	c := n.o.Source.Counts()
	c.BytesIn = n.f.bytes.Load()
	return c
}

// Acked implements env.Node.
func (n *Node) Acked(position uint64) int { return n.o.Source.Acked(n.offset(position)) }

// offset is that of the stream which belongs to a position of the log. Position 0 stands for
// nothing, which every replica has.
func (n *Node) offset(position uint64) uint64 {
	t := n.tap.Load()
	switch {
	case position == 0:
		return 0
	case t == nil: // there is no stream: it begins later, behind this
		return math.MaxUint64
	}
	return t.offset(position)
}

// IsWhole reports whether the state is a whole one, which may be kept in a snapshot. It is
// not during a full sync with a primary.
func (n *Node) IsWhole() bool { return n.f.whole.Load() }

// Reached is the offset behind all that the keyspace holds, for SourceOptions.Reached.
func (n *Node) Reached() uint64 {
	if t := n.tap.Load(); t != nil {
		return t.reached()
	}
	return n.f.reached.Load()
}

// DataSet is what a replica is told that claims to have a data set, for SourceOptions.DataSet. A
// primary that does not know its own takes over that of its replica, or draws one: from then on
// they know each other.
func (n *Node) DataSet(claimed string) string {
	id := n.o.Files.DataSet()
	if id == "" && claimed != "" && n.tap.Load() != nil {
		if id = claimed; id == unknownDataSet {
			id = persistence.NewID()
		}
		n.o.Files.SetDataSet(id)
	}
	return id
}

// EnoughReplicas implements env.Node.
func (n *Node) EnoughReplicas() bool { return n.o.Source.Enough() }

// PutInForce has the settings decide by now how many replicas a primary needs.
func (n *Node) PutInForce() { n.needReplicas() }

// Refuses reports whether this node is a replica that refuses the state of its primary.
func (n *Node) Refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replica && n.refuses
}

// Freed is told that the backlog was freed, for SourceOptions.Freed. Then the log need not
// pass on anything until there is a replica again.
func (n *Node) Freed() {
	n.freed.Store(true)
	n.nudge()
}

// redisPosition is up to where the state is that of a Redis, or "" if it is not.
func (n *Node) redisPosition() (replid string, offset int64, settled bool) {
	if n.o.Redis == nil {
		return "", 0, false
	}
	return n.o.Redis.Current()
}

// up says that the link is up. The caller holds mu.
func (n *Node) up() {
	n.phase, n.wasUp, n.fault, n.refuses = phaseConnected, true, "", false
	n.o.Host.SetMasterDown(false)
}
