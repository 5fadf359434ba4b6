package replication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// retryEvery is the time after which a replica connects again when its link has ended.
const retryEvery = time.Second

// needLog makes sure that the node has a log. It returns an error if the log cannot be created.
func (n *Node) needLog() error {
	if n.log != nil {
		return nil
	}
	log, err := n.o.Files.Log()
	if err != nil {
		return fmt.Errorf("there is no log to replicate with: %w", err)
	}
	n.log, n.f.log = log, log
	return nil
}

// tapIn begins the stream of a primary, unless it has begun before. The stream has a new history,
// unless no other node has a part of the present history. The error means that there is no log.
func (n *Node) tapIn() error {
	if n.tap.Load() != nil {
		return nil
	}
	if err := n.needLog(); err != nil {
		return err
	}
	h := newHistory()
	if n.fresh {
		h = n.o.Source.History()
	}
	n.fresh = false
	n.o.Keyspace.Exclusively(func() {
		n.o.Source.Begin(h, n.o.Source.Offset())
		n.setTap()
	})
	return nil
}

// tapOut ends the stream of a primary at its present end. related says that the state is that of
// the history at this offset; it is false if there was no stream, or if effects were recorded while
// a handover had sealed it.
func (n *Node) tapOut() (related bool) {
	t := n.tap.Load()
	n.o.Keyspace.Exclusively(func() {
		if t != nil {
			n.log.SetTap(nil)
			n.tap.Store(nil)
		}
		n.o.Keyspace.SweepTo(n.o.Clock.Now().Add(-KeepExpired)) // the clock of the next primary may be behind
	})
	return t != nil && !t.changed()
}

// demote makes a primary a replica. It does nothing if the node is a replica already. The error
// means that there is no log.
func (n *Node) demote() error {
	if n.following {
		return nil
	}
	if err := n.needLog(); err != nil {
		return err
	}
	if !n.fresh || !n.resume() {
		n.f.related = n.tapOut()
	}
	n.following, n.fresh = true, false
	n.stepDown()
	return nil
}

// resume prepares a node that was a replica when its server last stopped, so that it asks its
// primary for the changes that it has missed. It returns false if the files do not record the
// primary and offset of their state.
func (n *Node) resume() bool {
	n.o.Keyspace.Exclusively(func() {}) // Exclusively waits for commands that had begun before writes were refused
	o := n.o.Files.Origin()
	if o != nil {
		n.o.Source.Begin(History{ID: o.History, Offset2: -1}, o.Offset)
		n.f.related, n.f.received, n.f.from, n.f.resumes = true, true, o.Primary, true
	}
	return o != nil
}

// noteOrigin is called when the server stops. On a replica of a cellserver with a complete state, it
// records in the files which primary and history the state belongs to, and at which offset, unless
// the log refuses effects.
func (n *Node) noteOrigin() {
	n.mu.Lock()
	replica := n.following && n.handover.state == handoverNone
	n.mu.Unlock()
	if !replica || !n.f.whole.Load() || !n.f.related || n.log.Refuses() {
		return
	}
	o := persistence.Origin{History: n.o.Source.History().ID, Offset: n.o.Source.Offset(), Primary: n.f.from}
	if err := n.log.NoteOrigin(&o); err != nil {
		n.o.Log.Warn("replication position not saved: the next start needs a full resynchronization", "error", err)
	}
}

// stepDown completes the change from primary to replica, by REPLICAOF or by a handover: the backlog
// is kept without replicas, min-replicas-to-write no longer counts, and clients that only a primary
// serves are unblocked.
func (n *Node) stepDown() {
	n.o.Source.Retain(true)
	n.needReplicas()
	n.o.Host.Unblock()
}

// promote makes the node a primary. Its link must have ended. It keeps an order to follow that has
// come meanwhile.
func (n *Node) promote() {
	if n.following {
		whole := n.f.whole.Load()
		n.o.Keyspace.Exclusively(func() { n.takeOver(whole) })
		if !whole {
			n.o.Log.Warn("promoted during a full resynchronization: this primary starts without a key")
			n.f.rewrite.begin(n.o.Files, n.o.Log)
		}
		n.following = false
	} else {
		n.o.Keyspace.SweepTo(limit.MaxInstant) // an order to follow a primary is not carried out yet
		n.f.received = false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.o.Host.SetLoading(false) // even a state without keys is complete now
	if n.order == orderReplicaOf {
		return // REPLICAOF was called in the meantime
	}
	n.roleState = roleState{}
	n.require()
	n.o.Host.SetMasterDown(false)
	n.o.Host.SetReadOnly(false)
	n.o.Host.SetPrimary("", "")
	n.o.Log.Info("this node is a primary now", "history", n.o.Source.History().ID, "offset", n.o.Source.Offset())
}

// takeOver does the part of a promotion that needs exclusive use of the keyspace. whole says that
// the state is complete; otherwise the node starts with an empty keyspace.
func (n *Node) takeOver(whole bool) {
	switch {
	case !whole:
		n.f.abandon()
		n.o.Source.Begin(newHistory(), n.o.Source.Offset())
	case n.f.related:
		n.o.Source.Promote(persistence.NewID())
	case n.tap.Load() != nil: // the node has followed a Redis, so it has a stream of its own already
	default:
		n.o.Source.Begin(newHistory(), n.o.Source.Offset())
	}
	n.o.Clock.StopFollowing()
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	n.o.Source.Retain(false)
	if n.o.Redis != nil {
		n.o.Redis.Forget()
	}
	n.f.from, n.f.received = "", false
	if n.tap.Load() == nil {
		n.setTap()
	}
}

// startLinks starts the goroutine that keeps a link to a primary. The parameter to is its address.
func (n *Node) startLinks(ctx context.Context, to place) {
	ctx, n.linkLoop.cancel = context.WithCancel(ctx)
	n.linkLoop.done.Go(func() { n.keepLinked(ctx, to) })
}

// stopLinks stops the goroutine of startLinks and waits for its end.
func (n *Node) stopLinks() {
	if n.linkLoop.cancel != nil {
		n.linkLoop.cancel()
		n.linkLoop.done.Wait()
		n.linkLoop.cancel = nil
	}
}

// keepLinked keeps a link to a primary, whose address is to, until ctx ends. It connects again when
// the link has ended.
func (n *Node) keepLinked(ctx context.Context, to place) {
	for ctx.Err() == nil {
		l := newLink(&n.o, &linkReceiver{n: n, to: to})
		n.mu.Lock()
		n.link, n.phase = l, phaseConnecting
		n.mu.Unlock()
		err := l.run(ctx, to.address())
		n.f.drop()
		n.down(ctx, to, err)
		select {
		case <-ctx.Done():
		case <-n.o.After(retryEvery):
		}
	}
}

// down records that the link to the primary has ended, and the reason. If ctx has ended, down only
// forgets the link.
func (n *Node) down(ctx context.Context, to place, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link = nil
	if ctx.Err() != nil {
		return
	}
	if n.handover.linkFailed(why, n.o.Stopwatch()); n.handover.abort != "" {
		n.nudge()
	}
	n.refuses = refusesState(why)
	if n.phase == phaseConnected || n.refuses {
		// Sentinel does not promote a replica whose link has been down for long. This replica has
		// reached its primary, so its state is worth promoting.
		n.downSince = n.o.Stopwatch()
	}
	n.phase = phaseConnect
	n.o.Host.SetMasterDown(!n.o.Settings().ServeStale)
	if text := why.Error(); n.fault != text {
		n.fault = text
		n.o.Log.Warn("lost the link to the primary", "primary", to.address(), "error", why)
	}
}

// linkReceiver is the receiver of a node's link to the primary at to.
type linkReceiver struct {
	n  *Node
	to place
}

// greeting implements receiver. It asks for a partial resynchronization if the state allows that,
// and during a handover it also asks the target to take over.
func (r *linkReceiver) greeting() greeting {
	n, s := r.n, r.n.o.Settings()
	g := greeting{user: s.User, password: s.Password, port: s.Port, ip: s.AnnounceIP, dataSet: n.o.Files.DataSet()}
	if n.f.whole.Load() && n.f.related {
		g.id, g.next = n.o.Source.History().ID, n.o.Source.Offset()+1
	} else if id, offset, _ := n.redisPosition(); n.f.whole.Load() && id != "" {
		g.id, g.next = id, uint64(offset)+1
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	g.failover = n.handover.state == handoverUnderWay && g.id != ""
	n.handover.tried = n.o.Stopwatch()
	return g
}

// errRedis is the reason why a node without Options.Redis does not follow a Redis.
var errRedis = errors.New("the primary is a Redis or Valkey, which this server cannot follow")

// answered implements receiver. It also ends a handover that waits for the answer.
func (r *linkReceiver) answered(a answer, err error) error {
	n := r.n
	if err := n.conclude(&a, err); err != nil {
		return err
	}
	switch {
	case a.redis && n.o.Redis == nil:
		return errRedis
	case a.redis:
		n.redisAnswers(a.full, r.to.address())
	default:
		n.endRedis()
		if err := n.f.begin(a, r.to.address()); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.phase, n.bytesBefore = phaseSync, n.f.bytes.Load()
	if !a.full {
		n.up()
	}
	return nil
}

// chunk implements receiver: it applies c. It also records that the link is up when a full
// resynchronization has ended.
func (r *linkReceiver) chunk(c Chunk) error {
	was := r.n.f.streaming.Load()
	err := r.n.f.chunk(c)
	if !was && r.n.f.streaming.Load() {
		r.n.mu.Lock()
		r.n.up()
		r.n.mu.Unlock()
	}
	return err
}

func (r *linkReceiver) round() { r.n.f.round() }

func (r *linkReceiver) incomplete() bool { return r.n.f.incomplete() }

func (r *linkReceiver) progress() progress { return r.n.f.progress() }

// noteFailure records why the target of the handover has not answered: err is the error of the
// handshake, and asked says that the target may have been asked to take over. If the target was
// never asked, because it has rejected an earlier step of the handshake, it has not taken over,
// and the handover is aborted. The handover is also aborted if the target rejects PSYNC.
func (h *handover) noteFailure(asked bool, err error) {
	if asked && !h.asked {
		h.asked, h.askedAt = true, h.tried
	}
	switch refused := (*refusal)(nil); {
	case !errors.As(err, &refused):
	case refused.what == "PSYNC":
		h.abort = "Failover target rejected psync request"
	case !h.asked:
		h.abort = "Failover target rejected the handshake: " + refused.Error()
	}
}

// conclude ends a handover, if one is in progress, when the target has answered with a. If the
// handshake has failed with the error err, the handover continues, because the target may have
// taken over, unless noteFailure aborts it. conclude returns err, or an error if the state has
// changed during the handover. After an error, the link has to end.
func (n *Node) conclude(a *answer, err error) error {
	n.mu.Lock()
	underWay := n.handover.state == handoverUnderWay
	if underWay && err != nil {
		n.handover.noteFailure(a.asked, err)
		n.nudge()
	}
	n.mu.Unlock()
	if err != nil || !underWay {
		return err
	}
	related := n.tapOut()
	n.f.related = related
	n.mu.Lock()
	n.handover = handover{}
	n.mu.Unlock()
	n.stepDown()
	n.o.Host.Resume()
	if !related {
		return errors.New("something was changed during the failover: the state of the new primary is needed")
	}
	return nil
}

// endStream ends the stream of a primary whose source has freed its backlog, because there is no
// replica. The next replica begins another history. It does nothing on a replica, and during a
// handover.
func (n *Node) endStream() {
	if !n.freed.Swap(false) || n.following {
		return
	}
	n.mu.Lock()
	idle := n.handover.state == handoverNone && len(n.o.Source.Replicas()) == 0 && n.tap.Swap(nil) != nil
	n.mu.Unlock()
	if idle {
		n.log.SetTap(nil)
	}
}

// needReplicas makes a primary refuse changes while it has too few good replicas, according to the
// present settings. Any goroutine may call it. It locks mu.
func (n *Node) needReplicas() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.require()
}

// require does what needReplicas does, for callers that hold mu.
func (n *Node) require() {
	s := n.o.Settings()
	needs := !n.replica && s.NeedsReplicas()
	if needs {
		n.o.Source.Require(s.MinReplicas, s.MinReplicasMaxLag)
	}
	n.o.Host.SetNoReplicas(needs)
}
