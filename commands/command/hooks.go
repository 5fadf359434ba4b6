package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Hooks are functions by which a group takes part in the work of others. A hook may be nil. Hooks
// without a note are called by the goroutine that feeds the client or uses the worker.
type Hooks struct {
	// BatchEnd is called after a batch of commands, while its input is still valid.
	BatchEnd func(w *Worker)
	// Limited is called with the decision on a for a command of another group. Only one group may
	// have it.
	Limited func(c *Call, a *decide.Ask)
	// Decided is called with the result of a wait for room.
	Decided func(w *Worker, db int, d *Decided, now limit.Instant)
	// Decay is called once a minute, and ResetStats by CONFIG RESETSTAT, for every worker. Any
	// goroutine may call them.
	Decay, ResetStats func(w *Worker)

	// Intercept is called before a command of a client with MarkQueuing runs. It reports whether it
	// has answered the command. size is the length of the command in bytes. Only one group may have
	// it.
	Intercept func(c *Call, size int) bool
	// Rejected is called when a command of a client with MarkQueuing or MarkCaching is refused
	// before it runs. c.Cmd is nil if there is no such command.
	Rejected func(c *Call)
	// Run runs the command of a client with MarkTracking. Only one group may have it.
	Run func(c *Call)
	// Awaits reports whether a client with Told set has to wait before it runs the commands that
	// have arrived. The group wakes the client afterwards.
	Awaits func(cl *Client) bool
	// AfterCommand is called after a command has ended and released its locks, for workers that
	// have set Publishes.
	AfterCommand func(w *Worker)

	// Serve gives elements under the locked keys to the clients that wait for them. Unlocked
	// answers these clients after everything was unlocked, or disconnects them if the command was
	// abandoned. It is called for workers that have set Serves. Only one group may have them.
	Serve    func(c *Call)
	Unlocked func(c *Call, abandoned bool)

	// ReadsElsewhere returns a function to call right before and right after the running command
	// reads on another goroutine; nil if there is nothing to call.
	ReadsElsewhere func(c *Call) func()
	// Proxied is called when proxy starts to act for cl on another goroutine, and Merged when that
	// is over. Transfer moves state that only one of them may have to proxy, and returns how many
	// bytes that takes.
	Proxied, Merged func(cl, proxy *Client)
	Transfer        func(cl, proxy *Client) (bytes int)
	// NeedsStore reports whether cmd, which may run while a script is busy, would wait for
	// something that the script has locked.
	NeedsStore func(cl *Client, cmd *Command) bool

	// Reset resets the group's state of a client (RESET). It may do only a part, and reports
	// whether there is more.
	Reset func(c *Call) (more bool)
	// Kept returns how many bytes a client keeps for a transaction, and how many commands are
	// queued in it, -1 outside of a transaction.
	Kept func(cl *Client) (bytes, queued int)
	// Closed is called after a client has disconnected.
	Closed func(cl *Client)
	// Describe adds the group's fields of CLIENT LIST for a client. Any goroutine may call it.
	Describe func(cl *Client, d *Description)
	// Memory returns how many bytes the group keeps for all clients. Any goroutine may call it.
	Memory func() int64
	// RulesChanged is called when the permissions of a user have changed. Any goroutine may call
	// it.
	RulesChanged func(u *acl.User, before *acl.Rules)
	// LimitsChanged is called when limits have changed. Any goroutine may call it.
	LimitsChanged func()
}

// hooks has the hooks of all groups.
type hooks struct {
	all       []*Hooks
	batchEnd  []func(w *Worker)
	intercept func(c *Call, size int) bool
	run       func(c *Call)
	limited   func(c *Call, a *decide.Ask)
	serve     func(c *Call)
	unlocked  func(c *Call, abandoned bool)
}

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
