package replication

import (
	"context"
	"errors"
	"time"
)

const (
	// turnEvery is the interval at which a primary sends its clock.
	turnEvery = 100 * time.Millisecond
	// lookEvery is the number of turns between two checks of a replica's link. That many turns take
	// one second.
	lookEvery = 10
)

// Run carries out the requests to the node until ctx ends. Then it ends the link, completes or
// interrupts the writing of a received state to the files, and returns nil. It must be called
// once.
func (n *Node) Run(ctx context.Context) error {
	defer n.endPromotions()
	defer n.noteOrigin()
	defer n.endRewrite()
	defer n.stopLinks()
	defer n.refuseDeferred()
	tick := n.o.After(turnEvery)
	for turns := 0; ; {
		n.serve(ctx)
		n.endStream()
		n.serveDeferred()
		n.expireConfirmation()
		n.stepHandover(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		case <-tick:
			tick = n.o.After(turnEvery)
			turns++
			n.turn(turns%lookEvery == 0)
		}
	}
}

// errStops is the reason why the state of a primary is not written to the files when the server
// stops: the primary sends the state again.
var errStops = errors.New("the server stops")

// endRewrite waits until the files have the state of the last full resynchronization. On a
// replica it interrupts the writing instead. A node that is or becomes a primary does not
// interrupt it, because it has acknowledged changes since.
func (n *Node) endRewrite() {
	n.mu.Lock()
	replica := n.following && n.order != orderPromote
	n.mu.Unlock()
	if replica {
		n.f.rewrite.interrupt(errStops)
	}
	n.f.rewrite.done.Wait()
}

// serve carries out the last request to change the role, if there is one. If there is no log for a
// request to follow, it postpones the request.
func (n *Node) serve(ctx context.Context) {
	n.mu.Lock()
	order, to := n.order, n.primary
	n.order = orderNone
	n.mu.Unlock()
	switch order {
	case orderReplicaOf:
		n.endPromotions()
		n.stopLinks()
		if err := n.demote(); err != nil {
			n.postpone(err)
			return
		}
		n.o.Host.SetMasterDown(!n.o.Settings().ServeStale)
		n.startLinks(ctx, to)
	case orderPromote:
		n.stopLinks()
		n.promote()
		n.endPromotions()
	}
}

// postpone repeats the request to follow for the next turn, because there is no log: why is the
// error.
func (n *Node) postpone(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.order == orderNone {
		n.order = orderReplicaOf
	}
	n.refuses = false
	if text := why.Error(); n.fault != text {
		n.fault = text
		n.o.Log.Error("cannot start replication yet", "error", why)
	}
}

// turn makes a primary send its clock to its replicas. If second is true, turn also cuts the link
// of a replica whose primary has exceeded repl-timeout. turn is called each tenth of a second.
func (n *Node) turn(second bool) {
	n.mu.Lock()
	l, sealed := n.link, n.handover.state != handoverNone
	n.mu.Unlock()
	if n.tap.Load() != nil && !sealed && len(n.o.Source.Replicas()) > 0 {
		if err := n.log.NoteClock(); err != nil {
			n.o.Log.Debug("sending the clock to the replicas failed", "error", err)
		}
	}
	if !second {
		return
	}
	if n.following && l != nil {
		if why := l.overdue(n.o.Settings().Timeout); why != nil {
			l.cut(why)
		}
	}
}
