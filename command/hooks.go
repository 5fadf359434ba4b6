package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Hooks are functions by which a group takes part in the work of other groups and of sessions. A
// hook may be nil. The goroutine that feeds the client or uses the worker calls a hook, unless the
// hook's comment says that any goroutine may.
type Hooks struct {
	// BatchEnd is called after a batch of commands on w, while the input of the batch is still
	// valid.
	BatchEnd func(w *Worker)
	// Limited is called after a command of another group has got a decision on the ask a. At most
	// one group may have this hook.
	Limited func(c *Call, a *decide.Ask)
	// Decided is called with the result d of a command that has waited for room under a limit, in
	// the database db at the instant now.
	Decided func(w *Worker, db int, d *Decided, now limit.Instant)
	// Decay is called once a minute for every worker, and ResetStats by CONFIG RESETSTAT for every
	// worker. Any goroutine may call them.
	Decay, ResetStats func(w *Worker)

	// Intercept is called before a command of a client with MarkQueuing runs. It returns true if it
	// has replied and the command must not run. size is the length of the command in bytes. At most
	// one group may have this hook.
	Intercept func(c *Call, size int) bool
	// Rejected is called when a command of a client with MarkQueuing or MarkCaching is refused
	// before it runs. c.Cmd is nil if the command does not exist.
	Rejected func(c *Call)
	// Run runs the command of a client with MarkTracking instead of the command's own Run. At most
	// one group may have this hook.
	Run func(c *Call)
	// Awaits reports whether a client with Invalidated set has to wait before it runs the commands
	// that have arrived. The group wakes the client afterwards.
	Awaits func(cl *Client) bool
	// AfterCommand is called after a command has ended and has released its locks, for workers that
	// have set Publishes.
	AfterCommand func(w *Worker)

	// Serve gives elements under the locked keys to the clients that wait for them. Unlocked is
	// called for workers that have set Serves, after everything was unlocked. It sends the replies
	// of those clients, or discards the replies if the effects of the command were abandoned,
	// because then the connections are being closed. At most one group may have these two hooks.
	Serve    func(c *Call)
	Unlocked func(c *Call, abandoned bool)

	// ReadsElsewhere returns a function to be called right before and right after the running
	// command reads keys on another goroutine; nil if there is nothing to call.
	ReadsElsewhere func(c *Call) func()
	// Proxied is called when proxy starts to act for cl on another goroutine, and Merged when proxy
	// stops. Transfer moves the state that only one of the two clients may have from cl to proxy,
	// and returns the memory in bytes that this state takes.
	Proxied, Merged func(cl, proxy *Client)
	Transfer        func(cl, proxy *Client) (bytes int)
	// NeedsStore reports whether cmd, which may run while a script is busy, would wait for locks of
	// the script.
	NeedsStore func(cl *Client, cmd *Command) bool

	// Reset resets the group's state of the client of c (RESET). It may do only a part of the work;
	// then more is true, and it is called again.
	Reset func(c *Call) (more bool)
	// Kept returns the memory in bytes that the group keeps for the watched keys and the queued
	// commands of cl, and the number of these commands, -1 outside of a transaction.
	Kept func(cl *Client) (bytes, queued int)
	// Closed is called after the client cl has disconnected.
	Closed func(cl *Client)
	// Describe adds the fields of CLIENT LIST that the group knows about cl to d. Any goroutine may
	// call it.
	Describe func(cl *Client, d *Description)
	// Memory returns the memory in bytes that the group keeps for all clients. Any goroutine may
	// call it.
	Memory func() int64
	// RulesChanged is called when the permissions of the user u have changed from those in before.
	// Any goroutine may call it.
	RulesChanged func(u *acl.User, before *acl.Rules)
	// LimitsChanged is called when [Server.Limits] have changed. Any goroutine may call it.
	LimitsChanged func()
	// Post sends a message of the server itself to the subscribers of channel. Any goroutine may call it.
	Post func(channel, body []byte)
}

// hooks has the hooks of all groups. The other fields repeat those in all that are called often, or
// that only one group may have.
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

// only sets *dst to f, a hook that only one group may have, unless f is nil. It panics if another
// group has set the hook: that is a programming error, found at start-up.
func only[F func(*Call) | func(*Call, bool) | func(*Call, int) bool | func(*Call, *decide.Ask)](dst *F, f F) {
	switch {
	case f == nil:
	case *dst != nil:
		panic("command: two groups have a hook that is for one")
	default:
		*dst = f
	}
}

// BatchEnd calls the BatchEnd hooks after a batch of commands on w, and lets the worker's ask
// forget the arguments that it refers to.
func (s *Server) BatchEnd(w *Worker) {
	for _, f := range s.hooks.batchEnd {
		f(w)
	}
	w.ask.Forget()
}

// Limited calls the Limited hook with the decision on a, for a command that limits callers but does
// not belong to the limiters' group. If the decision refuses the call, Limited also increments
// c.Denied.
func (s *Server) Limited(c *Call, a *decide.Ask) {
	if a.Decision.Refused != 0 {
		c.Denied++
	}
	if f := s.hooks.limited; f != nil { // f is nil if no group has limiters
		f(c, a)
	}
}

// Decided calls the Decided hooks with d, the result of a wait for room under a limit, on the
// worker w in the database db.
func (s *Server) Decided(w *Worker, db int, d *Decided, now limit.Instant) {
	for _, h := range s.hooks.all {
		if f := h.Decided; f != nil {
			f(w, db, d, now)
		}
	}
}

// Decay calls the Decay hooks for the worker w. It is called once a minute.
func (s *Server) Decay(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.Decay; f != nil {
			f(w)
		}
	}
}

// ResetStats calls the ResetStats hooks for the worker w: they reset the statistics of the groups.
func (s *Server) ResetStats(w *Worker) {
	for _, h := range s.hooks.all {
		if f := h.ResetStats; f != nil {
			f(w)
		}
	}
}

// Intercepts reports whether a group has replied to the command of c, so that it must not run:
// inside MULTI it is queued until EXEC. size is the length of the command in bytes.
func (s *Server) Intercepts(c *Call, size int) bool {
	return c.Client.Marks&MarkQueuing != 0 && s.hooks.intercept(c, size)
}

// Rejected calls the Rejected hooks for the command of c, which is refused before it runs, if the
// client has MarkQueuing or MarkCaching.
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

// Handler returns the function that runs the command of c. For clients that track keys it is the
// Run hook of a group, and for all others the command's own Run.
func (s *Server) Handler(c *Call) func(c *Call) {
	if c.Client.Marks&MarkTracking != 0 {
		return s.hooks.run
	}
	return c.Cmd.Run
}

// Awaits reports whether the client cl has to wait before it runs the commands that have arrived.
// It calls the Awaits hooks of all groups if the client receives invalidations.
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

// AfterCommand calls the AfterCommand hooks if w has set Publishes, and clears Publishes. It is
// called after a command has ended and has released its locks.
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

// ReadsElsewhere returns a function to be called right before and right after the running command
// reads keys on another goroutine: the first that a ReadsElsewhere hook returns. It returns nil if
// there is nothing to call.
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

// Proxied calls the Proxied hooks when proxy starts to act for cl on another goroutine.
func (s *Server) Proxied(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Proxied; f != nil {
			f(cl, proxy)
		}
	}
}

// Merged calls the Merged hooks when proxy stops to act for cl.
func (s *Server) Merged(cl, proxy *Client) {
	for _, h := range s.hooks.all {
		if f := h.Merged; f != nil {
			f(cl, proxy)
		}
	}
}

// Transfer moves the state that only one of the two clients may have from cl to proxy. It returns
// the memory in bytes that the state takes.
func (s *Server) Transfer(cl, proxy *Client) (bytes int) {
	for _, h := range s.hooks.all {
		if f := h.Transfer; f != nil {
			bytes += f(cl, proxy)
		}
	}
	return bytes
}

// NeedsStore reports whether cmd, which may run while a script is busy, would wait for locks of the
// script.
func (s *Server) NeedsStore(cl *Client, cmd *Command) bool {
	for _, h := range s.hooks.all {
		if f := h.NeedsStore; f != nil && f(cl, cmd) {
			return true
		}
	}
	return false
}

// Reset resets the state that groups keep for the client of c (RESET). It may do only a part of the
// work; then more is true, and the caller has to call Reset again.
func (s *Server) Reset(c *Call) (more bool) {
	for _, h := range s.hooks.all {
		if f := h.Reset; f != nil {
			more = f(c) || more
		}
	}
	return more
}

// Kept returns the memory in bytes that the groups keep for the watched keys and the queued commands
// of cl, and the number of these commands, -1 outside of a transaction.
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

// Closed calls the Closed hooks after the client cl has disconnected.
func (s *Server) Closed(cl *Client) {
	for _, h := range s.hooks.all {
		if f := h.Closed; f != nil {
			f(cl)
		}
	}
}

// Describe returns the fields of CLIENT LIST that groups know about cl. Any goroutine may call it.
func (s *Server) Describe(cl *Client) Description {
	d := Description{Redirect: -1}
	for _, h := range s.hooks.all {
		if f := h.Describe; f != nil {
			f(cl, &d)
		}
	}
	return d
}

// Memory returns the memory in bytes that groups keep for all clients. Any goroutine may call it.
func (s *Server) Memory() (n int64) {
	for _, h := range s.hooks.all {
		if f := h.Memory; f != nil {
			n += f()
		}
	}
	return n
}

// RulesChanged calls the RulesChanged hooks when the permissions of the user u have changed from
// those in before. Any goroutine may call it.
func (s *Server) RulesChanged(u *acl.User, before *acl.Rules) {
	for _, h := range s.hooks.all {
		if f := h.RulesChanged; f != nil {
			f(u, before)
		}
	}
}

// Post sends a message of the server itself to the subscribers of channel. Any goroutine may call it.
func (s *Server) Post(channel, body []byte) {
	for _, h := range s.hooks.all {
		if f := h.Post; f != nil {
			f(channel, body)
		}
	}
}

// LimitsChanged applies the settings of the slow log and the latency monitor in the new limits, and
// calls the LimitsChanged hooks. Any goroutine may call it.
func (s *Server) LimitsChanged() {
	s.observe(&s.Limits().Observing)
	for _, h := range s.hooks.all {
		if f := h.LimitsChanged; f != nil {
			f()
		}
	}
}
