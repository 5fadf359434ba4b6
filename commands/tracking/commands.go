package tracking

import (
	"slices"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
)

// tracking is what a client has asked for with CLIENT TRACKING ON. It is replaced,
// never changed.
type tracking struct {
	optIn, optOut, noLoop bool
	// broadcast is BCAST: the client is told of all keys with one of its prefixes,
	// whatever it has read.
	broadcast bool
	prefixes  []string // sorted
	redirect  int64    // the client that is told in the place of this one, or 0
}

// cost is the memory that the prefixes take.
func (t *tracking) cost() (n int) {
	if t != nil {
		for _, p := range t.prefixes {
			n += command.SubscriptionCost([]byte(p))
		}
	}
	return n
}

// Group returns CLIENT TRACKING and its kin, which tell clients what they have to
// forget.
func Group() command.Group {
	return command.Group{
		Commands: commands(),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			v := newInvalidator(s, slot)
			return v, command.Hooks{
				Run: v.run, Rejected: func(c *command.Call) { v.endCaching(c.Client, c.Cmd) }, Awaits: v.awaitsNews,
				ReadsElsewhere: v.readsElsewhere, Proxied: v.proxied, Merged: v.merged,
				Reset: v.reset, Closed: v.closed, Describe: v.describe, Memory: v.size,
				LimitsChanged: v.leaveToShrink, Info: v.info,
			}
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			t := &workerTracking{observer: observer{invalidator: slot.OfServer(w.Server).(*invalidator), worker: w}}
			t.observer.reading = &t.reading
			w.Store.Observe(&t.observer)
			return t
		},
	}
}

func commands() []*command.Command {
	sub := func(name string, arity int, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: "client|" + name, Arity: arity, Flags: command.FlagNoScript | command.FlagLoading | command.FlagStale,
			Categories: command.CatConnection, Group: "connection", Summary: summary, Syntax: syntax,
			Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
		}
	}
	const ok = "OK"
	return []*command.Command{
		sub("caching", 3, "<YES | NO>", "Tells the server whether to track the keys of the next command.", ok, clientCaching),
		sub("getredir", 2, "", "Returns the client that invalidations are redirected to.", "-1 without tracking, 0 without a redirection", clientGetRedir),
		sub("tracking", -3, "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]", "Controls server-assisted client-side caching.", ok, clientTracking),
		sub("trackinginfo", 2, "", "Returns the state of tracking of the connection.", "a map", clientTrackingInfo),
	}
}

// invalidatorOf is what the group of the running command, which is this one, keeps.
func invalidatorOf(c *command.Call) *invalidator { return command.ServerState[invalidator](c) }

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
func (v *invalidator) start(cl *command.Client, st command.Store, t *tracking, prefixes []string) {
	own := command.ClientState[trackingState](owner(cl), v.slot)
	v.clients.Add(1)
	st.StartObserving()
	if t.broadcast {
		if old := own.tracks.Load(); old != nil {
			t.prefixes = old.prefixes
		}
		for _, p := range prefixes {
			v.prefixes.join(p, cl.Id)
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
	if cl.ProxyOf != nil && v.server.Host.Client(cl.Id) == nil {
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
		v.leave(cl.Id, t)
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
		v.leave(cl.Id, t)
	default:
		v.server.Host.Spawn(func() { v.leave(cl.Id, t) })
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

// info adds what INFO says.
func (v *invalidator) info(i *command.Info) {
	i.TrackingClients = v.clients.Load()
	i.TrackingKeys, i.TrackingItems, i.TrackingPrefixes = v.reads.keys.Load(), v.reads.items.Load(), v.prefixes.count.Load()
}

func clientTracking(c *command.Call) {
	v := invalidatorOf(c)
	call, err := parseTracking(c.Args[2:], func(id int64) bool { return c.Server.Host.Client(id) != nil })
	if err == "" && call.on {
		err = call.check(v.tracking(c.Client))
	}
	if err != "" {
		c.Fail(err)
		return
	}
	if call.on {
		v.start(c.Client, c.Store, &call.tracking, call.prefixes)
	} else {
		v.end(c.Client)
	}
	c.OK()
}

func clientCaching(c *command.Call) {
	t := invalidatorOf(c).tracking(c.Client)
	if t == nil {
		c.Fail(errCachingMode)
		return
	}
	if err := parseCaching(c.Args[2], t); err != "" {
		c.Fail(err)
		return
	}
	c.Client.Mark(command.MarkCaching, true)
	c.OK()
}

func clientGetRedir(c *command.Call) {
	if t := invalidatorOf(c).tracking(c.Client); t != nil {
		c.W.Int(t.redirect)
		return
	}
	c.W.Int(-1)
}

func clientTrackingInfo(c *command.Call) {
	v, caching := invalidatorOf(c), c.Client.Marks&command.MarkCaching != 0
	t, flags, redirect := v.tracking(c.Client), []string{"off"}, int64(-1)
	if t != nil {
		flags, redirect = []string{"on"}, t.redirect
		for _, f := range []struct {
			set  bool
			name string
		}{
			{t.broadcast, "bcast"},
			{t.optIn, "optin"},
			{t.optIn && caching, "caching-yes"},
			{t.optOut, "optout"},
			{t.optOut && caching, "caching-no"},
			{t.noLoop, "noloop"},
			{v.of(owner(c.Client)).lostRedirect.Load(), "broken_redirect"},
		} {
			if f.set {
				flags = append(flags, f.name)
			}
		}
	} else {
		t = &tracking{}
	}
	c.W.Map(3)
	c.W.BulkString("flags")
	c.W.Set(len(flags))
	for _, f := range flags {
		c.W.BulkString(f)
	}
	c.W.BulkString("redirect")
	c.W.Int(redirect)
	c.W.BulkString("prefixes")
	c.W.Array(len(t.prefixes))
	for _, p := range t.prefixes {
		c.W.BulkString(p)
	}
}
