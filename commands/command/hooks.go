package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

func (h *hooks) add(n Hooks) {
	h.all = append(h.all, &n)
	if n.BatchEnd != nil {
		h.batchEnd = append(h.batchEnd, n.BatchEnd)
	}
	only(&h.intercept, n.Intercept)
	only(&h.run, n.Run)
	only(&h.limited, n.Limited)
	only(&h.serve, n.Serve)
	only(&h.unlocked, n.Unlocked)
}

// only sets a hook that one group may have: two are a mistake of ours, found at start-up.
func only[F func(*Call) | func(*Call, bool) | func(*Call, int) bool | func(*Call, *decide.Ask)](dst *F, f F) {
	switch {
	case f == nil:
	case *dst != nil:
		panic("command: two groups have a hook that is for one")
	default:
		*dst = f
	}
}

// BatchEnd tells the groups that a batch of commands has run.
func (s *Server) BatchEnd(w *Worker) {
	for _, f := range s.hooks.batchEnd {
		f(w)
	}
	w.ask.Forget()
}

// Limited counts the decision on a of a command that is in no group of limiters and limits callers.
func (s *Server) Limited(c *Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	if f := s.hooks.limited; f != nil { // else there are no limiters
		f(c, a)
	}
}

// Decided tells the groups how a wait for room has ended.
func (s *Server) Decided(w *Worker, db int, d *Decided, now limit.Instant) {
	for _, h := range s.hooks.all {
		if f := h.Decided; f != nil {
			f(w, db, d, now)
		}
	}
}

// Decay is for once a minute.
func (s *Server) Decay(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.Decay; f != nil {
			f(w)
		}
	}
}

// ResetStats has the groups forget what they have counted.
func (s *Server) ResetStats(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.ResetStats; f != nil {
			f(w)
		}
	}
}

// Intercepts reports whether a group has answered the command, which waits for EXEC.
func (s *Server) Intercepts(c *Call, size int) bool {
	return c.Client.Marks&MarkQueuing != 0 && s.hooks.intercept(c, size)
}

// Rejected tells the groups of a command that is refused before it runs.
func (s *Server) Rejected(c *Call) {
	if c.Client.Marks&(MarkQueuing|MarkCaching) == 0 {
		return
	}
	for _, h := range s.hooks.all {
		if f := h.Rejected; f != nil {
			f(c)
		}
	}
}

// Handler is what runs the command of a client.
func (s *Server) Handler(c *Call) func(c *Call) {
	if c.Client.Marks&MarkTracking != 0 {
		return s.hooks.run
	}
	return c.Cmd.Run
}

// Awaits reports whether a client has to wait before it runs what has arrived.
func (s *Server) Awaits(cl *Client) (waits bool) {
	if !cl.Told.Load() {
		return false
	}
	for _, h := range s.hooks.all {
		if f := h.Awaits; f != nil {
			waits = f(cl) || waits
		}
	}
	return waits
}

// AfterCommand tells the groups that a command is over, its locks included.
func (s *Server) AfterCommand(w *Worker) {
	if !w.Publishes {
		return
	}
	w.Publishes = false
	for _, h := range s.hooks.all {
		if f := h.AfterCommand; f != nil {
			f(w)
		}
	}
}

// ReadsElsewhere returns what is to be called right before and right after the running
// command reads on another goroutine; nil for nothing.
func (s *Server) ReadsElsewhere(c *Call) func() {
	for _, h := range s.hooks.all {
		if f := h.ReadsElsewhere; f != nil {
			if remember := f(c); remember != nil {
				return remember
			}
		}
	}
	return nil
}

// Proxied tells the groups that proxy begins to act for cl on another goroutine.
func (s *Server) Proxied(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Proxied; f != nil {
			f(cl, proxy)
		}
	}
}

// Merged tells the groups that proxy does not act for cl any more.
func (s *Server) Merged(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Merged; f != nil {
			f(cl, proxy)
		}
	}
}

// Transfer gives proxy what only one of the two may have, and returns how many bytes that
// takes.
func (s *Server) Transfer(cl, proxy *Client) (bytes int) {
	for _, h := range s.hooks.all {
		if f := h.Transfer; f != nil {
			bytes += f(cl, proxy)
		}
	}
	return bytes
}

// NeedsStore reports whether cmd, which may run while a script is busy, would wait for what
// the script has locked.
func (s *Server) NeedsStore(cl *Client, cmd *Command) bool {
	for _, h := range s.hooks.all {
		if f := h.NeedsStore; f != nil && f(cl, cmd) {
			return true
		}
	}
	return false
}

// Reset is RESET for what groups keep of a client. It may do a part, and reports whether
// there is more.
func (s *Server) Reset(c *Call) (more bool) {
	for _, h := range s.hooks.all {
		if f := h.Reset; f != nil {
			more = f(c) || more
		}
	}
	return more
}

// Kept is how many bytes a client keeps in a transaction, and how many commands wait in
// it; -1 outside of one.
func (s *Server) Kept(cl *Client) (bytes, queued int) {
	queued = -1
	if cl.states.Load() == nil {
		return bytes, queued
	}
	for _, h := range s.hooks.all {
		if f := h.Kept; f != nil {
			n, waiting := f(cl)
			bytes, queued = bytes+n, max(queued, waiting)
		}
	}
	return bytes, queued
}

// Closed tells the groups that a client is gone.
func (s *Server) Closed(cl *Client) {
	for _, h := range s.hooks.all {
		if f := h.Closed; f != nil {
			f(cl)
		}
	}
}

// Describe is what groups know of a client for CLIENT LIST. Any goroutine may call it.
func (s *Server) Describe(cl *Client) Description {
	d := Description{Redirect: -1}
	for _, h := range s.hooks.all {
		if f := h.Describe; f != nil {
			f(cl, &d)
		}
	}
	return d
}

// Memory is how many bytes groups keep for clients. Any goroutine may call it.
func (s *Server) Memory() (n int64) {
	for _, h := range s.hooks.all {
		if f := h.Memory; f != nil {
			n += f()
		}
	}
	return n
}

// RulesChanged tells the groups that a user may do something else than before. Any goroutine
// may call it.
func (s *Server) RulesChanged(u *acl.User, before *acl.Rules) {
	for _, h := range s.hooks.all {
		if f := h.RulesChanged; f != nil {
			f(u, before)
		}
	}
}

// LimitsChanged puts in force what the server observes, and tells the groups of new limits.
// Any goroutine may call it.
func (s *Server) LimitsChanged() {
	s.observe(&s.Limits().Observing)
	for _, h := range s.hooks.all {
		if f := h.LimitsChanged; f != nil {
			f()
		}
	}
}
