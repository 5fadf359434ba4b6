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

// Node is the replication role of a server: a primary, or a replica that follows one. It
// implements env.Node. Methods that change the role leave a request for [Node.Run], which must be
// running. The other methods may be called from any goroutine and do not block.
type Node struct {
	o    Options
	f    *follower
	wake chan struct{} // capacity one: Run has something to do

	// tap receives what the log writes on this node. It is nil on a replica of a server of this
	// kind, and on a primary before its first replica.
	tap   atomic.Pointer[tap]
	freed atomic.Bool // the source has freed its backlog: no stream is needed

	// The fields up to mu belong to the goroutine of Run.
	fresh     bool     // no other node has a part of the history yet
	following bool     // the present role; replica below is the requested one
	log       Log      // nil until it is needed
	linkLoop  linkLoop // the goroutine that keeps the link

	mu sync.Mutex // guards the fields below
	roleState
	handover   handover
	promotions []func() // callbacks for when the promotion is done or replaced by another order
	confirm    confirmation
	deferred   []*deferredPump
}

// roleState is the role that was requested, and how far it is established.
type roleState struct {
	replica bool
	primary place  // the primary to follow; only of a replica
	order   order  // the request that Run has not carried out yet
	phase   string // one of the states of ROLE
	link    *link  // the present link, or nil
	// downSince is the stopwatch reading when the link went down, or the node began to follow.
	downSince   time.Duration
	wasUp       bool   // the link was up since the node began to follow
	bytesBefore int64  // bytes received when the present synchronization began
	fault       string // why the last link ended
	refuses     bool   // the last link ended because this node refused the state of the primary
}

// place is the address at which a server listens.
type place struct{ host, port string }

func (p place) address() string { return net.JoinHostPort(p.host, p.port) }

// order is a requested change of the role.
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

// handover is a FAILOVER from this node to a replica.
type handover struct {
	state handoverState
	to    place // the target; empty while it may be any replica
	force bool
	until time.Duration // stopwatch reading at which waiting ends; 0 is never
	abort string        // why it is to be aborted, or empty
	began time.Duration // stopwatch reading when the node began to connect to the target
	tried time.Duration // stopwatch reading when the present attempt began
	asked bool          // the target may have been asked to take over, and has not answered
	// askedAt is the reading when it may first have been asked, or earlier.
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

// New returns a node. It is a primary without replicas and has a new history. The state of its
// keyspace must already be loaded.
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

// newHistory returns a history that continues no other.
func newHistory() History { return History{ID: persistence.NewID(), Offset2: -1} }

// ReplicaOf implements env.Node. When it returns, commands that write are refused.
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

// Promote implements env.Node. Commands that write are refused until the promotion is done.
func (n *Node) Promote(done func()) {
	if !n.requestPromotion(done) && done != nil {
		done()
	}
}

// requestPromotion leaves the request for Run, and reports whether there is anything to do.
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

// endPromotions calls the callbacks of the last promotion, which was carried out or replaced.
func (n *Node) endPromotions() {
	n.mu.Lock()
	leads := n.promotions
	n.promotions = nil
	n.mu.Unlock()
	for _, done := range leads {
		done()
	}
}

// nudge wakes Run, which then looks for work.
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
		n.endConfirmation()
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

// offset returns the stream offset of a position of the log. Position 0 stands for no change,
// which every replica has.
func (n *Node) offset(position uint64) uint64 {
	t := n.tap.Load()
	switch {
	case position == 0:
		return 0
	case t == nil: // there is no stream yet, and it will begin behind this position
		return math.MaxUint64
	}
	return t.offset(position)
}

// IsWhole reports whether the state is complete and may be kept in a snapshot. It is not during a
// full resynchronization with a primary.
func (n *Node) IsWhole() bool { return n.f.whole.Load() }

// Reached returns the offset behind everything that the keyspace holds, for
// SourceOptions.Reached.
func (n *Node) Reached() uint64 {
	if t := n.tap.Load(); t != nil {
		return t.reached()
	}
	return n.f.reached.Load()
}

// DataSet returns the ID of the data set that is sent to a replica which claims to have the data
// set claimed, for SourceOptions.DataSet. A primary that does not know its own ID takes the
// replica's, or draws a random one. From then on both know the ID.
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

// PutInForce applies the settings that say how many replicas a primary needs.
func (n *Node) PutInForce() { n.needReplicas() }

// Refuses reports whether this node is a replica that refuses the state of its primary.
func (n *Node) Refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replica && n.refuses
}

// Freed implements SourceOptions.Freed: the source has freed its backlog. The log need not pass
// anything on until there is a replica again.
func (n *Node) Freed() {
	n.freed.Store(true)
	n.nudge()
}

// redisPosition returns how far the state is that of a followed Redis. replid is "" if it is not.
func (n *Node) redisPosition() (replid string, offset int64, settled bool) {
	if n.o.Redis == nil {
		return "", 0, false
	}
	return n.o.Redis.Current()
}

// up records that the link is up. The caller holds mu.
func (n *Node) up() {
	n.phase, n.wasUp, n.fault, n.refuses = phaseConnected, true, "", false
	n.o.Host.SetMasterDown(false)
}
