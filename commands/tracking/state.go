package tracking

import (
	"slices"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
)

// workerTracking is the state of the group for a worker: the observer of its store, and the tracked
// read that it runs.
type workerTracking struct {
	observer observer
	reading  reading
}

// trackingState is the state of CLIENT TRACKING of one client.
type trackingState struct {
	// tracks is nil if the client does not track keys. The goroutine that runs the client's
	// commands, or closes the client, sets it.
	tracks atomic.Pointer[tracking]
	// newsUpTo is the value of invalidator.issued that invalidator.told has to reach before the
	// client may run its next commands; 0 if the client does not wait.
	newsUpTo     uint64
	lostRedirect atomic.Bool // the client that REDIRECT names was found to be disconnected
}

// of returns the tracking state of cl, or nil if it has none. Any goroutine may call it.
func (v *invalidator) of(cl *command.Client) *trackingState {
	state, _ := v.slot.OfClient(cl).(*trackingState)
	return state
}

// tracking returns the tracking options of cl, or nil if cl does not track keys. Any goroutine may
// call it.
func (v *invalidator) tracking(cl *command.Client) *tracking {
	if state := v.of(cl); state != nil {
		return state.tracks.Load()
	}
	return nil
}

// start begins tracking for cl with the options t, or replaces the present options of cl by t. With
// BCAST, it adds prefixes to the client's present prefixes. It calls StartObserving of st, so that
// all stores report their changes. The caller must not change t afterwards.
func (v *invalidator) start(cl *command.Client, st env.Observable, t *tracking, prefixes []string) {
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
	owner(cl).Invalidated.Store(true)
	if to := v.server.Host.Registry.Client(t.redirect); to != nil {
		to.Invalidated.Store(true)
	}
	// The replaced options are no longer counted. old is nil, too, if the client of a proxy has
	// disconnected meanwhile: closed has then already subtracted its options.
	if old := own.tracks.Swap(t); old != nil {
		v.clients.Add(-1)
		v.memory.Add(-int64(old.cost()))
	}
	if cl.ProxyOf != nil {
		command.ClientState[trackingState](cl, v.slot).tracks.Store(t)
	}
	cl.Mark(command.MarkTracking, true)
	if cl.ProxyOf != nil && v.server.Host.Registry.Client(cl.ID) == nil {
		v.end(cl) // the client has disconnected meanwhile
	}
}

// owner returns the client whose tracking state other goroutines read. For a proxy it is the client
// for which the proxy acts, and otherwise cl itself.
func owner(cl *command.Client) *command.Client {
	if cl.ProxyOf != nil {
		return cl.ProxyOf
	}
	return cl
}

// end ends the tracking of cl. If cl is a proxy, end also ends the tracking of the client for which
// cl acts.
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

// reset is the Reset hook: it ends the tracking of the client of c.
func (v *invalidator) reset(c *command.Call) (more bool) {
	v.end(c.Client)
	return false
}

// closed is the Closed hook: it ends the tracking of the disconnected client cl. If the client has
// many prefixes, another goroutine removes them. A proxy of the client may still run.
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
		v.server.Host.Work.Spawn(func() { v.leave(cl.ID, t) })
	}
}

// leave subtracts the client id, which has tracked keys with the options t, from the counts, and
// removes the client from the groups of its prefixes. Its entries in the read table may stay until
// the keys change. When no client tracks keys any more, another goroutine removes them.
func (v *invalidator) leave(id int64, t *tracking) {
	last := v.clients.Add(-1) == 0
	v.memory.Add(-int64(t.cost()))
	for _, p := range t.prefixes {
		v.prefixes.leave(p, id)
	}
	if last && v.reads.keys.Load() > 0 {
		v.server.Host.Work.Spawn(func() { v.reads.sweep(v.tracks) })
	}
}

// tracks reports whether the client id is connected and tracks keys. Any goroutine may call it.
func (v *invalidator) tracks(id int64) bool {
	cl := v.server.Host.Registry.Client(id)
	return cl != nil && v.tracking(cl) != nil
}

// proxied is the Proxied hook: it copies the tracking options and marks of cl to its proxy.
func (v *invalidator) proxied(cl, proxy *command.Client) {
	if t := v.tracking(cl); t != nil {
		command.ClientState[trackingState](proxy, v.slot).tracks.Store(t)
	}
	proxy.Marks |= cl.Marks & (command.MarkTracking | command.MarkCaching)
}

// merged is the Merged hook: it copies the tracking mark of proxy back to cl, and ends the effect
// of CLIENT CACHING.
func (v *invalidator) merged(cl, proxy *command.Client) {
	cl.Mark(command.MarkCaching, false)
	cl.Mark(command.MarkTracking, proxy.Marks&command.MarkTracking != 0)
}

// describe is the Describe hook: it adds the tracking fields of CLIENT LIST for cl to d.
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

// figures returns the metrics of tracking clients and of the invalidation table.
func figures() []figure.Figure {
	return []figure.Figure{
		figure.Shown("Clients", "tracking_clients", command.Counted(func(v *invalidator) int64 { return v.clients.Load() })),
		figure.Shown("Stats", "tracking_total_keys", command.Counted(func(v *invalidator) int64 { return v.reads.keys.Load() })),
		figure.Shown("Stats", "tracking_total_items", command.Counted(func(v *invalidator) int64 { return v.reads.items.Load() })),
		figure.Shown("Stats", "tracking_total_prefixes", command.Counted(func(v *invalidator) int64 { return v.prefixes.count.Load() })),
	}
}

// reading returns the description of the tracked read that the worker w runs.
func (v *invalidator) reading(w *command.Worker) *reading {
	return &v.slot.OfWorker(w).(*workerTracking).reading
}
