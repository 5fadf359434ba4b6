package tracking

import (
	"slices"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/figure"
)

// workerTracking is what the group keeps for a worker.
type workerTracking struct {
	observer observer
	reading  reading
}

// trackingState is what CLIENT TRACKING keeps of a client.
type trackingState struct {
	tracks atomic.Pointer[tracking] // nil without CLIENT TRACKING; set by the feeding goroutine only
	// newsUpTo is up to where it has to be told before it goes on, 0 if it has not.
	newsUpTo     uint64
	lostRedirect atomic.Bool // the client that this one redirects to was found to be gone
}

// of is what is kept of a client, nil if that is nothing. Any goroutine may call it.
func (v *invalidator) of(cl *command.Client) *trackingState {
	state, _ := v.slot.OfClient(cl).(*trackingState)
	return state
}

// tracking is how a client tracks, nil if it does not. Any goroutine may call it.
func (v *invalidator) tracking(cl *command.Client) *tracking {
	if state := v.of(cl); state != nil {
		return state.tracks.Load()
	}
	return nil
}

// start turns tracking on, or changes how: prefixes are added to those that there are.
func (v *invalidator) start(cl *command.Client, st env.Store, t *tracking, prefixes []string) {
	own := command.ClientState[trackingState](owner(cl), v.slot)
	v.clients.Add(1)
	st.StartObserving()
	if t.broadcast {
		if old := own.tracks.Load(); old != nil {
			t.prefixes = old.prefixes
		}
		for _, p := range prefixes {
			v.prefixes.join(p, cl.ID)
		}
		t.prefixes = slices.Concat(t.prefixes, prefixes)
		slices.Sort(t.prefixes)
		t.prefixes = slices.Compact(t.prefixes)
	}
	v.memory.Add(int64(t.cost()))
	own.lostRedirect.Store(false)
	owner(cl).Told.Store(true)
	if to := v.server.Host.Client(t.redirect); to != nil {
		to.Told.Store(true)
	}
	// What is replaced is counted no more. There is none either if the client of a proxy has
	// gone away meanwhile: closed has counted that.
	if old := own.tracks.Swap(t); old != nil {
		v.clients.Add(-1)
		v.memory.Add(-int64(old.cost()))
	}
	if cl.ProxyOf != nil {
		command.ClientState[trackingState](cl, v.slot).tracks.Store(t)
	}
	cl.Mark(command.MarkTracking, true)
	if cl.ProxyOf != nil && v.server.Host.Client(cl.ID) == nil {
		v.end(cl) // the client has gone away meanwhile
	}
}

// owner is the client whose tracking others look at: that for which a proxy acts.
func owner(cl *command.Client) *command.Client {
	if cl.ProxyOf != nil {
		return cl.ProxyOf
	}
	return cl
}

// end turns tracking off.
func (v *invalidator) end(cl *command.Client) {
	cl.Mark(command.MarkCaching|command.MarkTracking, false)
	own := v.of(owner(cl))
	if own == nil {
		return
	}
	own.lostRedirect.Store(false)
	t := own.tracks.Swap(nil)
	if proxy := v.of(cl); proxy != nil {
		proxy.tracks.Store(nil)
	}
	if t != nil {
		v.leave(cl.ID, t)
	}
}

// reset is RESET.
func (v *invalidator) reset(c *command.Call) (more bool) {
	v.end(c.Client)
	return false
}

// closed is end for a client that is gone; on a goroutine of its own if it takes long. A
// proxy of it may still run.
func (v *invalidator) closed(cl *command.Client) {
	const few = 256
	state := v.of(cl)
	if state == nil {
		return
	}
	switch t := state.tracks.Swap(nil); {
	case t == nil:
	case len(t.prefixes) <= few:
		v.leave(cl.ID, t)
	default:
		v.server.Host.Spawn(func() { v.leave(cl.ID, t) })
	}
}

// leave forgets that a client tracked in the way of t. What it has read stays in the table
// until that changes, or until nobody tracks.
func (v *invalidator) leave(id int64, t *tracking) {
	last := v.clients.Add(-1) == 0
	v.memory.Add(-int64(t.cost()))
	for _, p := range t.prefixes {
		v.prefixes.leave(p, id)
	}
	if last && v.reads.keys.Load() > 0 {
		v.server.Host.Spawn(func() { v.reads.sweep(v.tracks) })
	}
}

// tracks reports whether the client of that id is there and tracks.
func (v *invalidator) tracks(id int64) bool {
	cl := v.server.Host.Client(id)
	return cl != nil && v.tracking(cl) != nil
}

// proxied lets a proxy track as its client does.
func (v *invalidator) proxied(cl, proxy *command.Client) {
	if t := v.tracking(cl); t != nil {
		command.ClientState[trackingState](proxy, v.slot).tracks.Store(t)
	}
	proxy.Marks |= cl.Marks & (command.MarkTracking | command.MarkCaching)
}

// merged lets a client track as its proxy does.
func (v *invalidator) merged(cl, proxy *command.Client) {
	cl.Mark(command.MarkCaching, false)
	cl.Mark(command.MarkTracking, proxy.Marks&command.MarkTracking != 0)
}

// describe adds what CLIENT LIST says of a client.
func (v *invalidator) describe(cl *command.Client, d *command.Description) {
	state := v.of(cl)
	if state == nil {
		return
	}
	if t := state.tracks.Load(); t != nil {
		d.Tracks, d.BrokenRedirect, d.Broadcasting, d.Redirect = true, state.lostRedirect.Load(), t.broadcast, t.redirect
		d.Memory += int64(t.cost())
	}
}

// figures are those of clients that are told what they have to forget, and of what they have read.
func figures() []figure.Figure {
	return []figure.Figure{
		figure.Shown("Clients", "tracking_clients", command.Counted(func(v *invalidator) int64 { return v.clients.Load() })),
		figure.Shown("Stats", "tracking_total_keys", command.Counted(func(v *invalidator) int64 { return v.reads.keys.Load() })),
		figure.Shown("Stats", "tracking_total_items", command.Counted(func(v *invalidator) int64 { return v.reads.items.Load() })),
		figure.Shown("Stats", "tracking_total_prefixes", command.Counted(func(v *invalidator) int64 { return v.prefixes.count.Load() })),
	}
}

// reading is the read that a worker runs.
func (v *invalidator) reading(w *command.Worker) *reading {
	return &v.slot.OfWorker(w).(*workerTracking).reading
}
