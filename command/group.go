package command

import "github.com/cellserver/cellserver/figure"

// Group is a set of commands: their entries, and the private state that the group keeps for the
// server, for each worker and for a client.
type Group struct {
	Commands []*Command
	// Needs are the parts without commands that the group shares with other groups, such as the
	// queues of clients that wait for elements. A table has each part once, even if several of its
	// groups need it. A part must not have Needs itself.
	Needs []*Group
	// Server creates the group's state for the server s. It returns the state, which may be nil,
	// and the hooks by which the group takes part in the work of others. Server is nil for a group
	// that has neither.
	Server func(s *Server, slot Slot) (state any, hooks Hooks)
	// Worker creates the group's state for the new worker w. One goroutine at a time uses this
	// state. Worker is nil if there is no such state. It is called after Server. The group's
	// commands access the state by [Scratch].
	Worker func(w *Worker, slot Slot) any
	// Figures are the metrics of the group's counters; see [Counted].
	Figures []figure.Figure
}

// OfServer returns the state that the group of slot i keeps for the server s; nil if there is none.
func (i Slot) OfServer(s *Server) any { return s.states[i] }

// OfWorker returns the state that the group of slot i keeps for the worker w; nil if there is none.
func (i Slot) OfWorker(w *Worker) any { return w.states[i] }

// OfClient returns the state that the group of slot i keeps for the client cl; nil if there is
// none. Any goroutine may call it.
func (i Slot) OfClient(cl *Client) any {
	if all := cl.states.Load(); all != nil {
		for _, s := range *all {
			if s.slot == i {
				return s.state
			}
		}
	}
	return nil
}

// Keep sets the state that the group of slot i keeps for the client cl. Only the goroutine that
// feeds the client may call it.
func (i Slot) Keep(cl *Client, state any) {
	var all []clientState
	if old := cl.states.Load(); old != nil {
		for _, s := range *old {
			if s.slot != i {
				all = append(all, s)
			}
		}
	}
	all = append(all, clientState{i, state})
	cl.states.Store(&all)
}

// Slot returns the index of the state of the command's group.
func (c *Command) Slot() Slot { return Slot(c.group) }

// Scratch returns the state that the group of the running command keeps for the worker. It panics
// if the state is not a *T.
func Scratch[T any](c *Call) *T { return c.states[c.Cmd.group].(*T) }

// ServerState returns the state that the group of the running command keeps for the server. It
// panics if the state is not a *T.
func ServerState[T any](c *Call) *T { return c.Server.states[c.Cmd.group].(*T) }

// ClientState returns the state that the group of slot keeps for the client cl, and creates it if
// there is none. Only the goroutine that feeds the client may call it.
func ClientState[T any](cl *Client, slot Slot) *T {
	if state, ok := slot.OfClient(cl).(*T); ok {
		return state
	}
	state := new(T)
	slot.Keep(cl, state)
	return state
}

// Equip has each group create its state for the new server s, and adds the group's hooks.
func (s *Server) Equip() {
	for i, g := range s.Commands.groups {
		if g.Server == nil {
			continue
		}
		state, hooks := g.Server(s, Slot(i))
		s.states[i] = state
		s.hooks.add(hooks)
	}
}

// Equip makes the new worker w, whose Store and Server are set, ready to run commands: it binds the
// store to the types that the commands need, and has each group create its state. It panics if the
// store lacks what a command needs.
func (w *Worker) Equip() {
	w.Server.Commands.bind(w)
	for i, g := range w.Server.Commands.groups {
		if g.Worker != nil {
			w.states[i] = g.Worker(w, Slot(i))
		}
	}
}

// Find returns the state of type T that any group keeps for the server; nil if there is none. It
// searches all groups, so it is not for frequent calls.
func Find[T any](s *Server) *T {
	for _, state := range s.states {
		if found, ok := state.(*T); ok {
			return found
		}
	}
	return nil
}
