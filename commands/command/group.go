package command

import "github.com/cellserver/cellserver/figure"

// Group is a set of commands: their entries, and the private state that the group keeps for the
// server, for each worker and for a client.
type Group struct {
	Commands []*Command
	// Needs are the parts without commands that the group shares with others, such as the queues of
	// clients that wait for elements. A table has each part once, however many of its groups need
	// it. A part has no Needs itself.
	Needs []*Group
	// Server creates the group's state for the server, and returns the hooks by which the group
	// takes part in the work of others. nil for a group without both.
	Server func(s *Server, slot Slot) (state any, hooks Hooks)
	// Worker creates the group's state for a new worker, which one goroutine at a time uses; nil if
	// there is none. It is called after Server. The group's commands access the state by [Scratch].
	Worker func(w *Worker, slot Slot) any
	// Figures are the figures of what the group counts; see [Counted].
	Figures []figure.Figure
}

// OfServer returns the state that the group keeps for the server.
func (i Slot) OfServer(s *Server) any { return s.states[i] }

// OfWorker returns the state that the group keeps for a worker.
func (i Slot) OfWorker(w *Worker) any { return w.states[i] }

// OfClient returns the state that the group keeps for a client; nil if there is none. Any goroutine
// may call it.
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

// Keep stores the state that the group keeps for a client. Only the goroutine that feeds the client
// may call it.
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

// Slot returns the place of the state of the command's group.
func (c *Command) Slot() Slot { return Slot(c.group) }

// Scratch returns the state that the group of the running command keeps for the worker.
func Scratch[T any](c *Call) *T { return c.states[c.Cmd.group].(*T) }

// ScratchOf returns the state that the group of the running command keeps for another worker.
func ScratchOf[T any](c *Call, w *Worker) *T { return w.states[c.Cmd.group].(*T) }

// ServerState returns the state that the group of the running command keeps for the server.
func ServerState[T any](c *Call) *T { return c.Server.states[c.Cmd.group].(*T) }

// ClientState returns the state that a group keeps for a client, and creates it if there is none.
// Only the goroutine that feeds the client may call it.
func ClientState[T any](cl *Client, slot Slot) *T {
	if state, ok := slot.OfClient(cl).(*T); ok {
		return state
	}
	state := new(T)
	slot.Keep(cl, state)
	return state
}

// Equip has the groups create their state for a new server.
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

// Equip has the groups create their state for a new worker.
func (w *Worker) Equip() {
	for i, g := range w.Server.Commands.groups {
		if g.Worker != nil {
			w.states[i] = g.Worker(w, Slot(i))
		}
	}
}

// Find returns the server state of type T, of whichever group keeps one; nil if there is none. It
// searches all groups, so use it rarely.
func Find[T any](s *Server) *T {
	for _, state := range s.states {
		if found, ok := state.(*T); ok {
			return found
		}
	}
	return nil
}
