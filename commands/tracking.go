package commands

import (
	"slices"

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

// startTracking turns tracking on, or changes how: prefixes are added to those that
// there are.
func (s *Session) startTracking(st command.Store, t *tracking, prefixes []string) {
	v, own := &s.engine.invalidator, s.ownTracking()
	v.clients.Add(1)
	st.StartObserving()
	if t.broadcast {
		if old := own.tracks.Load(); old != nil {
			t.prefixes = old.prefixes
		}
		for _, p := range prefixes {
			v.prefixes.join(p, s.Id)
		}
		t.prefixes = slices.Concat(t.prefixes, prefixes)
		slices.Sort(t.prefixes)
		t.prefixes = slices.Compact(t.prefixes)
	}
	v.memory.Add(int64(t.cost()))
	own.lostRedirect.Store(false)
	own.told.Store(true)
	if to := s.engine.clients.get(t.redirect); to != nil {
		to.told.Store(true)
	}
	// What is replaced is counted no more. There is none either if the client of a stand-in
	// has gone away meanwhile: forgetTracking has counted that.
	if old := own.tracks.Swap(t); old != nil {
		v.clients.Add(-1)
		v.memory.Add(-int64(old.cost()))
	}
	s.tracks.Store(t)
	if s.IsStandIn && s.engine.clients.get(s.Id) == nil {
		s.endTracking() // the client has gone away meanwhile
	}
}

// ownTracking is the session whose tracking others look at: that for which a stand-in
// acts.
func (s *Session) ownTracking() *Session {
	if s.standsFor != nil {
		return s.standsFor
	}
	return s
}

// endTracking turns tracking off.
func (s *Session) endTracking() {
	own := s.ownTracking()
	s.caching = false
	own.lostRedirect.Store(false)
	t := own.tracks.Swap(nil)
	s.tracks.Store(nil)
	if t != nil {
		s.engine.leaveTracking(s.Id, t)
	}
}

// forgetTracking is endTracking for a client that is gone; beside the loops if it takes
// long. A stand-in of it may still run.
func (s *Session) forgetTracking() {
	const few = 256
	switch t := s.tracks.Swap(nil); {
	case t == nil:
	case len(t.prefixes) <= few:
		s.engine.leaveTracking(s.Id, t)
	default:
		s.engine.Spawn(func() { s.engine.leaveTracking(s.Id, t) })
	}
}

// leaveTracking forgets that a client tracked in the way of t. What it has read stays in
// the table until that changes, or until nobody tracks.
func (e *Engine) leaveTracking(id int64, t *tracking) {
	v := &e.invalidator
	last := v.clients.Add(-1) == 0
	v.memory.Add(-int64(t.cost()))
	for _, p := range t.prefixes {
		v.prefixes.leave(p, id)
	}
	if last && v.reads.keys.Load() > 0 {
		e.Spawn(func() { v.reads.sweep(e.tracks) })
	}
}

// tracks reports whether the client of that id is there and tracks.
func (e *Engine) tracks(id int64) bool {
	s := e.clients.get(id)
	return s != nil && s.tracks.Load() != nil
}

func clientTracking(c *command.Call) {
	call, err := parseTracking(c.Args[2:], func(id int64) bool { return engineOf(c.Server).clients.get(id) != nil })
	if err == "" && call.on {
		err = call.check(sessionOf(c.Client).tracks.Load())
	}
	if err != "" {
		c.Fail(err)
		return
	}
	if call.on {
		sessionOf(c.Client).startTracking(c.Store, &call.tracking, call.prefixes)
	} else {
		sessionOf(c.Client).endTracking()
	}
	c.OK()
}

func clientCaching(c *command.Call) {
	t := sessionOf(c.Client).tracks.Load()
	if t == nil {
		c.Fail(errCachingMode)
		return
	}
	if err := parseCaching(c.Args[2], t); err != "" {
		c.Fail(err)
		return
	}
	sessionOf(c.Client).caching = true
	c.OK()
}

// redirection is what CLIENT GETREDIR replies. Any goroutine may call it.
func (s *trackingState) redirection() int64 {
	if t := s.tracks.Load(); t != nil {
		return t.redirect
	}
	return -1
}

func clientGetRedir(c *command.Call) { c.W.Int(sessionOf(c.Client).redirection()) }

func clientTrackingInfo(c *command.Call) {
	t := sessionOf(c.Client).tracks.Load()
	flags := []string{"off"}
	if t != nil {
		flags = []string{"on"}
		for _, f := range []struct {
			set  bool
			name string
		}{
			{t.broadcast, "bcast"},
			{t.optIn, "optin"},
			{t.optIn && sessionOf(c.Client).caching, "caching-yes"},
			{t.optOut, "optout"},
			{t.optOut && sessionOf(c.Client).caching, "caching-no"},
			{t.noLoop, "noloop"},
			{sessionOf(c.Client).ownTracking().lostRedirect.Load(), "broken_redirect"},
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
	c.W.Int(sessionOf(c.Client).redirection())
	c.W.BulkString("prefixes")
	c.W.Array(len(t.prefixes))
	for _, p := range t.prefixes {
		c.W.BulkString(p)
	}
}
