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

// Node is the replication role of a server: a primary, or a replica that follows a primary. It
// implements env.Node. Methods that change the role leave a request for [Node.Run], which must be
// running. Any goroutine may call the methods, and they do not block, except Run and the methods
// that Options.Redis calls.
type Node struct {
	o    Options
	f    *follower
	wake chan struct{} // has capacity one; an element means that Run has work to do

	// tap receives what this node's log writes, and passes it to the source. It is nil on a replica
	// whose primary is a cellserver, and on a primary that needs no stream: before its first
	// replica, and after the source has freed its backlog.
	tap   atomic.Pointer[tap]
	freed atomic.Bool // the source has freed its backlog, so no stream is needed

	// The fields from here to mu belong to the goroutine of Run.
	fresh     bool     // whether no other node has received a part of the history yet
	following bool     // whether the node is established as a replica; the field replica has the requested role
	log       Log      // the log; nil until it is needed
	linkLoop  linkLoop // runs the goroutine that keeps the link

	mu sync.Mutex // mu guards the fields below
	roleState
	handover   handover
	promotions []func() // functions to call when a promotion is done or another order has replaced it
	confirm    confirmation
	deferred   []*deferredPump
}

// roleState has the role that was requested, and the progress in establishing it.
type roleState struct {
	replica bool
	primary place  // address of the primary to follow; empty unless replica is true
	order   order  // the change of the role that Run has not carried out yet
	phase   string // the state of the link, as ROLE names it
	link    *link  // the present link; nil if there is none
	// downSince is the stopwatch reading when the link went down, or when the node began to
	// follow.
	downSince   time.Duration
	wasUp       bool   // whether the link was up since the node began to follow
	bytesBefore int64  // number of bytes that had been received when the present synchronization began
	fault       string // the reason why the last link has ended or could not begin; "" if there was no failure since the link was up
	refuses     bool   // whether the last link ended because this node refused the state of the primary
}

// place is the host and port at which a server listens.
type place struct{ host, port string }

func (p place) address() string { return net.JoinHostPort(p.host, p.port) }

// order is a requested change of the role that Run has not carried out yet.
type order uint8

const (
	orderNone order = iota
	orderReplicaOf
	orderPromote
)

// These are the states of a link, with the names that ROLE uses.
const (
	phaseConnect    = "connect"
	phaseConnecting = "connecting"
	phaseSync       = "sync"
	phaseConnected  = "connected"
)

// handover has the state of a FAILOVER from this node to a replica.
type handover struct {
	state handoverState
	to    place // address of the target; empty while any replica may be the target
	force bool
	until time.Duration // stopwatch reading at which waiting for the target ends; 0 means never
	abort string        // the reason for which the handover is to be aborted; "" if there is none
	began time.Duration // stopwatch reading when the node began to connect to the target
	tried time.Duration // stopwatch reading when the present attempt began
	asked bool          // whether the target may have been asked to take over, and has not answered
	// askedAt is the stopwatch reading when the target may first have been asked, or an earlier
	// reading.
	askedAt time.Duration
}

// handoverState is the state of a FAILOVER.
type handoverState uint8

const (
	handoverNone handoverState = iota
	handoverWaiting
	handoverUnderWay
)

// String returns the name that Redis gives the state in INFO.
func (s handoverState) String() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[s]
}

// linkLoop has the goroutine that keeps a link to a primary.
type linkLoop struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New returns a node that is a primary without replicas and has a new history. The keyspace must
// already be loaded. The caller must run [Node.Run].
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

// newHistory returns a history with a random ID that does not continue another history.
func newHistory() History { return History{ID: persistence.NewID(), Offset2: -1} }

// ReplicaOf implements env.Node: it requests that the node follows the primary at host and port.
// When it returns, commands that write are refused. It does nothing during a failover, or if the
// node already follows that primary.
func (n *Node) ReplicaOf(host, port string) {
	to := place{host, port}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.handover.state != handoverNone:
		n.o.Log.Warn("REPLICAOF ignored: a failover is in progress", "primary", to.address())
		return
	case n.replica && n.primary == to && n.order != orderPromote:
		return
	}
	n.roleState = roleState{
		replica: true, primary: to, order: orderReplicaOf, phase: phaseConnect,
		link: n.link, downSince: n.o.Stopwatch(), wasUp: n.wasUp,
	}
	n.o.Host.SetReadOnly(true)
	n.endConfirmation()
	n.o.Host.SetPrimary(host, port)
	n.nudge()
}

// Promote implements env.Node: it requests that the node becomes a primary. Commands that write are
// refused until the promotion is done. done, if it is not nil, is called when the promotion is
// done, or when REPLICAOF has replaced it. If the node is already a primary, or during a failover,
// Promote calls done at once and changes nothing.
func (n *Node) Promote(done func()) {
	if !n.requestPromotion(done) && done != nil {
		done()
	}
}

// requestPromotion leaves the request to promote for Run, which then calls done, unless done is
// nil. It returns false if the node cannot or need not be promoted. Then the caller has to call
// done.
func (n *Node) requestPromotion(done func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.handover.state != handoverNone:
		n.o.Log.Warn("REPLICAOF NO ONE ignored: a failover is in progress")
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

// endPromotions calls the functions that were given to Promote, and forgets them, because the
// promotion was carried out or replaced.
func (n *Node) endPromotions() {
	n.mu.Lock()
	leads := n.promotions
	n.promotions = nil
	n.mu.Unlock()
	for _, done := range leads {
		done()
	}
}

// nudge wakes Run, which then looks for work. It does not block.
func (n *Node) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Acknowledge implements env.Node: it records the acknowledgement r of the replica with the
// client ID id.
func (n *Node) Acknowledge(id int64, r protocol.Ack) {
	n.o.Source.Acknowledge(id, r)
	n.mu.Lock()
	waits := n.handover.state == handoverWaiting
	if id == n.confirm.client {
		n.endConfirmation()
	}
	n.mu.Unlock()
	if waits {
		n.nudge()
	}
}

// Await implements env.Node: it returns the number of replicas that have applied everything before
// position, a position of the log. The outcome is Kept if that number is at least replicas.
// Otherwise the outcome is Pending, and p, unless it is nil, is woken when the outcome may have
// changed.
func (n *Node) Await(replicas int, position uint64, p transport.Peer) (int, transport.Outcome) {
	return n.o.Source.Await(replicas, n.offset(position), p)
}

// Counts implements env.Node: it returns the counters since the start.
func (n *Node) Counts() protocol.Counts {
	c := n.o.Source.Counts()
	c.BytesIn = n.f.bytes.Load()
	return c
}

// Acked implements env.Node: it returns the number of replicas that have applied everything before
// position, a position of the log.
func (n *Node) Acked(position uint64) int { return n.o.Source.Acked(n.offset(position)) }

// offset returns the offset of the stream for a position of the log. It returns 0 for position 0,
// which means that nothing was changed: every replica has applied everything before offset 0. If
// this node has no stream of its own, it returns the maximum offset, which no replica has applied.
func (n *Node) offset(position uint64) uint64 {
	t := n.tap.Load()
	switch {
	case position == 0:
		return 0
	case t == nil: // the stream begins after this position, so no replica has it
		return math.MaxUint64
	}
	return t.offset(position)
}

// IsWhole reports whether the state is complete, so that a snapshot may contain it. It is not
// complete during a full resynchronization with a primary.
func (n *Node) IsWhole() bool { return n.f.whole.Load() }

// Reached returns the offset of the stream after everything that the keyspace contains, or 0 while
// a replica applies nothing. It is for SourceOptions.Reached.
func (n *Node) Reached() uint64 {
	if t := n.tap.Load(); t != nil {
		return t.reached()
	}
	return n.f.reached.Load()
}

// DataSet returns the ID of the data set that this node sends to a replica. claimed is the ID that
// the replica has sent: "" if it has sent none, and "?" if it does not know its ID. If a primary
// does not know its own ID and claimed is not "", the primary takes the ID of the replica or, for
// "?", a random ID. DataSet is for SourceOptions.DataSet.
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

// EnoughReplicas implements env.Node: it reports whether there are as many good replicas as
// min-replicas-to-write requires.
func (n *Node) EnoughReplicas() bool { return n.o.Source.Enough() }

// PutInForce applies the present values of min-replicas-to-write and min-replicas-max-lag.
func (n *Node) PutInForce() { n.needReplicas() }

// Refuses reports whether this node is a replica that has refused the state of its primary.
func (n *Node) Refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replica && n.refuses
}

// Freed records that the source has freed its backlog. The log then need not pass anything to the
// source until there is a replica again. It is for SourceOptions.Freed.
func (n *Node) Freed() {
	n.freed.Store(true)
	n.nudge()
}

// redisPosition returns the replication ID of the Redis that this node follows, and the offset in
// the stream of that Redis that the state has reached. replid is "" if the state does not come from
// a Redis. settled says that everything before offset is stored.
func (n *Node) redisPosition() (replid string, offset int64, settled bool) {
	if n.o.Redis == nil {
		return "", 0, false
	}
	return n.o.Redis.Current()
}

// up records that the link is up and the state is complete. The caller must hold mu.
func (n *Node) up() {
	n.phase, n.wasUp, n.fault, n.refuses = phaseConnected, true, "", false
	n.o.Host.SetMasterDown(false)
}
