package tracking

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// storeCall is a call of CLIENT TRACKING, which needs a store whose changes can be observed.
type storeCall = command.CallOn[env.Observable]

// Group returns the command group of CLIENT TRACKING, CLIENT CACHING, CLIENT TRACKINGINFO and
// CLIENT GETREDIR. Its hooks and observers send the invalidation messages.
func Group() command.Group {
	return command.Group{
		Commands: commands(),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			v := newInvalidator(s, slot)
			return v, command.Hooks{
				Run: v.run, Rejected: func(c *command.Call) { v.endCaching(c.Client, c.Cmd) }, Awaits: v.awaitsNews,
				ReadsElsewhere: v.readsElsewhere, Proxied: v.proxied, Merged: v.merged,
				Reset: v.reset, Closed: v.closed, Describe: v.describe, Memory: v.size,
				LimitsChanged: v.leaveToShrink,
			}
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			t := &workerTracking{observer: observer{invalidator: slot.OfServer(w.Server).(*invalidator), worker: w}}
			t.observer.reading = &t.reading
			w.Store.(env.Observable).Observe(&t.observer)
			return t
		},
		Figures: figures(),
	}
}

func commands() []*command.Command {
	const ok = "OK"
	return command.Entries(command.Defaults{
		Categories: command.CatConnection, Group: "connection", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "client|caching", Arity: 3,
			Flags:   command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagConnection,
			Summary: "Tells the server whether to track the keys of the next command.", Syntax: "<YES | NO>", Reply: ok,
			Run: clientCaching,
		},
		{
			Name: "client|getredir", Arity: 2,
			Flags:   command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagConnection,
			Summary: "Returns the client that invalidations are redirected to.", Reply: "-1 without tracking, 0 without a redirection",
			Run: clientGetRedir,
		},
		{
			Name: "client|tracking", Arity: -3,
			Flags:   command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagConnection,
			Summary: "Controls server-assisted client-side caching.",
			Syntax:  "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]", Reply: ok,
			RunOn: command.On(clientTracking),
		},
		{
			Name: "client|trackinginfo", Arity: 2,
			Flags:   command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagConnection,
			Summary: "Returns the state of tracking of the connection.", Reply: "a map", Run: clientTrackingInfo,
		},
	})
}

// invalidatorOf returns the invalidator of the server. The running command must be one of this
// group.
func invalidatorOf(c *command.Call) *invalidator { return command.ServerState[invalidator](c) }

func clientTracking(c storeCall) {
	v := invalidatorOf(c.Call)
	call, err := parseTracking(c.Args[2:], func(id int64) bool { return c.Server.Host.Registry.Client(id) != nil })
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
