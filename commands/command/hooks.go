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

// only sets a hook that a single group may have. Two groups with it are a programming error, found
// at start-up.
func only[F func(*Call) | func(*Call, bool) | func(*Call, int) bool | func(*Call, *decide.Ask)](dst *F, f F) {
	switch {
	case f == nil:
	case *dst != nil:
		panic("command: two groups have a hook that is for one")
	default:
		*dst = f
	}
}

// BatchEnd calls the hooks of groups after a batch of commands.
func (s *Server) BatchEnd(w *Worker) {
	for _, f := range s.hooks.batchEnd {
		f(w)
	}
	w.ask.Forget()
}

// Limited counts the decision on a for a command that limits callers but belongs to no group of
// limiters.
func (s *Server) Limited(c *Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	if f := s.hooks.limited; f != nil { // nil without a group of limiters
		f(c, a)
	}
}

// Decided tells the groups the result of a wait for room under a limit.
func (s *Server) Decided(w *Worker, db int, d *Decided, now limit.Instant) {
	for _, h := range s.hooks.all {
		if f := h.Decided; f != nil {
			f(w, db, d, now)
		}
	}
}

// Decay calls the Decay hooks. It is called once a minute.
func (s *Server) Decay(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.Decay; f != nil {
			f(w)
		}
	}
}

// ResetStats resets the statistics of the groups.
func (s *Server) ResetStats(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.ResetStats; f != nil {
			f(w)
		}
	}
}

// Intercepts reports whether a group has answered the command, which is then queued until EXEC.
func (s *Server) Intercepts(c *Call, size int) bool {
	return c.Client.Marks&MarkQueuing != 0 && s.hooks.intercept(c, size)
}

// Rejected tells the groups that a command is refused before it runs.
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

// Handler returns the function that runs the command of c: the Run hook of a group for clients that
// track keys, or else the command's own.
func (s *Server) Handler(c *Call) func(c *Call) {
	if c.Client.Marks&MarkTracking != 0 {
		return s.hooks.run
	}
	return c.Cmd.Run
}

// Awaits reports whether the client has to wait before it runs the commands that have arrived.
func (s *Server) Awaits(cl *Client) (waits bool) {
	if !cl.Invalidated.Load() {
		return false
	}
	for _, h := range s.hooks.all {
		if f := h.Awaits; f != nil {
			waits = f(cl) || waits
		}
	}
	return waits
}

// AfterCommand tells the groups that a command is over and has released its locks.
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

// ReadsElsewhere returns a function to call right before and right after the running command reads
// on another goroutine; nil if there is nothing to call.
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

// Proxied tells the groups that proxy starts to act for cl on another goroutine.
func (s *Server) Proxied(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Proxied; f != nil {
			f(cl, proxy)
		}
	}
}

// Merged tells the groups that proxy no longer acts for cl.
func (s *Server) Merged(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Merged; f != nil {
			f(cl, proxy)
		}
	}
}

// Transfer moves state that only one of the two may have from cl to proxy, and returns the bytes
// that it takes.
func (s *Server) Transfer(cl, proxy *Client) (bytes int) {
	for _, h := range s.hooks.all {
		if f := h.Transfer; f != nil {
			bytes += f(cl, proxy)
		}
	}
	return bytes
}

// NeedsStore reports whether cmd, which may run while a script is busy, would wait for something
// that the script has locked.
func (s *Server) NeedsStore(cl *Client, cmd *Command) bool {
	for _, h := range s.hooks.all {
		if f := h.NeedsStore; f != nil && f(cl, cmd) {
			return true
		}
	}
	return false
}

// Reset resets the state that groups keep for a client (RESET). It may do only a part, and reports
// whether there is more.
func (s *Server) Reset(c *Call) (more bool) {
	for _, h := range s.hooks.all {
		if f := h.Reset; f != nil {
			more = f(c) || more
		}
	}
	return more
}

// Kept returns how many bytes a client keeps for a transaction, and how many commands are queued in
// it, -1 outside of a transaction.
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

// Closed tells the groups that a client has disconnected.
func (s *Server) Closed(cl *Client) {
	for _, h := range s.hooks.all {
		if f := h.Closed; f != nil {
			f(cl)
		}
	}
}

// Describe returns what groups add to CLIENT LIST for a client. Any goroutine may call it.
func (s *Server) Describe(cl *Client) Description {
	d := Description{Redirect: -1}
	for _, h := range s.hooks.all {
		if f := h.Describe; f != nil {
			f(cl, &d)
		}
	}
	return d
}

// Memory returns how many bytes groups keep for clients. Any goroutine may call it.
func (s *Server) Memory() (n int64) {
	for _, h := range s.hooks.all {
		if f := h.Memory; f != nil {
			n += f()
		}
	}
	return n
}

// RulesChanged tells the groups that the permissions of a user have changed. Any goroutine may call
// it.
func (s *Server) RulesChanged(u *acl.User, before *acl.Rules) {
	for _, h := range s.hooks.all {
		if f := h.RulesChanged; f != nil {
			f(u, before)
		}
	}
}

// LimitsChanged applies the settings of the slow log and the latency monitor, and tells the groups
// that limits have changed. Any goroutine may call it.
func (s *Server) LimitsChanged() {
	s.observe(&s.Limits().Observing)
	for _, h := range s.hooks.all {
		if f := h.LimitsChanged; f != nil {
			f()
		}
	}
}
