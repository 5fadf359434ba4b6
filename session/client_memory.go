package session

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// memory is what is kept for the client, whose subscriptions take topics. Any goroutine may call it.
func (s *Session) memory(topics int64) command.ClientMemory {
	input, output := s.Peer.Held()
	return command.ClientMemory{
		Input: input, Output: output, Messages: int64(s.unread()), Queued: s.kept.Load(), Topics: topics,
	}
}

// noteKept tells others what a transaction and the watched keys take. An EXEC that came
// in the same turn as its MULTI is not worth a word.
func (s *Session) noteKept() {
	bytes, waiting := s.Server.Kept(&s.Client)
	kept, queued := int64(bytes), int32(1+waiting)
	if p := s.wait.Load(); p != nil {
		kept += int64(p.Kept)
	}
	if was := s.kept.Load(); kept != was {
		s.kept.Store(kept)
		s.engine.kept.Add(kept - was)
	}
	if queued != s.queued.Load() {
		s.queued.Store(queued)
	}
}

// refuseOverfull begins to throw the unfinished command away if [Engine.RefuseCommands] asks for
// it, and returns how many bytes of the input are done with: none if it is over already.
func (s *Session) refuseOverfull() (n int) {
	if !s.overfull.Load() {
		return 0
	}
	s.overfull.Store(false)
	limits, _ := s.frameLimits()
	n, _ = s.guard.GiveUp(resp.ErrOOM, limits)
	return n
}

// runsItsInput reports whether most of what is kept for the client is a command that is about
// to be run, or runs at this moment: then that memory is on its way.
func (s *Session) runsItsInput(held *command.ClientMemory) bool {
	if p := s.wait.Load(); p != nil {
		return p.Begun() && waitsMostly(held)
	}
	return s.partial.Load() == 0 && held.Output == 0 && 2*held.Input >= held.Sum()
}

// leaves reports whether most of what is kept for the client is replies that it may be taking at this
// moment: none of the mostLooks looks before this one found that.
func (s *Session) leaves(held *command.ClientMemory, look int64) bool {
	if 2*held.Output < held.Sum() {
		return false
	}
	if s.lookedAt.Swap(look) != look-1 {
		s.leaving.Store(look)
	}
	return look-s.leaving.Load() < mostLooks
}

// waitsMostly reports whether most of held is the command that waits. Its words count as input, too, until
// the connection has been attended to.
func waitsMostly(held *command.ClientMemory) bool {
	return held.Output == 0 && 2*(held.Input+held.Queued) >= held.Sum()
}

// refuseInput has an unfinished command refused that is most of what is kept for the
// client, and reports whether there is one. A client that leaves replies unread would not
// be fed, and so keep it.
func (s *Session) refuseInput(held *command.ClientMemory) bool {
	if s.partial.Load() == 0 || held.Output > 0 || held.Input <= leastRefused || 2*held.Input < held.Sum() {
		return false
	}
	s.overfull.Store(true)
	s.Peer.Wake()
	return true
}

// refuseWaiting has a command refused that waits for its turn in the background and is most of what is
// kept for the client, and reports whether there is one.
func (s *Session) refuseWaiting(held *command.ClientMemory) bool {
	p := s.wait.Load()
	return p != nil && waitsMostly(held) && p.Refuse(resp.ErrOOM)
}

// LargestBuffers is the most input and output that one client keeps at the moment, in bytes.
func (e *Engine) LargestBuffers() (input, output int64) {
	e.clients.mu.Lock()
	defer e.clients.mu.Unlock()
	for _, s := range e.clients.sessions {
		in, out := s.Peer.Held()
		input, output = max(input, in), max(output, out+int64(s.unread()))
	}
	return input, output
}

// ClientMemory is how many bytes sessions take: subscriptions, messages that wait for clients,
// what transactions and WATCH keep, and what is known of who has read what.
func (e *Engine) ClientMemory() int64 {
	return e.outbound.Load() + e.kept.Load() + e.Memory() + e.Large.Size()
}

// HoldLongInput has all sessions with more input than a few short commands wait, or go on. Their clients are
// not read from meanwhile.
func (e *Engine) HoldLongInput(hold bool) {
	if e.holding.Swap(hold) && !hold {
		e.wakeHeldBack()
	}
}

// wakeHeldBack lets the input go on that waits for HoldLongInput.
func (e *Engine) wakeHeldBack() {
	for _, s := range e.clients.list() {
		if s.heldBack.Swap(false) {
			s.Peer.Wake()
		}
	}
}

// holdsInput reports whether long input waits. A server that stops finishes with what has arrived.
func (e *Engine) holdsInput() bool { return e.holding.Load() && !e.Draining.Load() }

// holdsBack reports whether n bytes of input have to wait for [Engine.HoldLongInput]. What is to be refused
// gives memory back.
func (s *Session) holdsBack(n int) bool {
	if n <= largeInput || !s.engine.holdsInput() || s.overfull.Load() {
		return false
	}
	s.heldBack.Store(true)
	return s.engine.holdsInput() || !s.heldBack.Swap(false) // it may have ended in between
}

// EvictClients takes memory from clients until what is kept for the others is within
// maxmemory-clients: from those first for whom most is kept, and never from those that
// asked to be spared (CLIENT NO-EVICT). A client that is sending a long command, or whose long
// command waits for its turn, is refused that, with the error of full memory; any other is closed. A client
// that keeps replies is not within half a second, unless all clients together keep twice as much.
// all is what is kept for all of them together, which is less than the sum where several wait for
// the same message, and more where the memory of a client that has left is still being freed: no
// other client is closed for that. The server calls it several times a second.
func (e *Engine) EvictClients(all int64) {
	closed := e.takeMemory(all, 1+e.looks.Add(1)) // from 2 on: a session that no look has found has 0
	refused, freed := e.taken.refused.Swap(0), e.taken.bytes.Swap(0)
	if closed+refused > 0 {
		e.Log.Warn("took memory from the clients that held the most, to stay within maxmemory-clients",
			"closed", closed, "commands_refused", refused, "bytes", freed, "bound", e.Limits().ClientMemory)
	}
}

// RefuseCommands does of [Engine.EvictClients] what closes no client. The server calls it when
// [Engine.LongInput] tells it to: clients send faster than the memory is looked at.
func (e *Engine) RefuseCommands(all int64) { e.takeMemory(all, 0) }

// LongInput receives when a client has sent a part of a long command.
func (e *Engine) LongInput() <-chan struct{} { return e.longInput }

// noteLongInput tells [Engine.LongInput] of an unfinished command of which this many bytes are there.
func (e *Engine) noteLongInput(held int) {
	if held <= leastRefused {
		return
	}
	select {
	case e.longInput <- struct{}{}:
	default:
	}
}

// takeMemory is EvictClients, and returns how many clients it closed: none if look, the number of the
// call, is 0.
func (e *Engine) takeMemory(all, look int64) (closed int64) {
	bound := e.Limits().ClientMemory
	if bound <= 0 || all <= bound {
		return 0
	}
	type holder struct {
		*Session
		held int64
	}
	var holders []holder
	sum := int64(0)
	for _, s := range e.clients.list() {
		if s.Replica.Load() {
			continue // as in Redis: to close it would cost a full synchronization
		}
		m := s.memory(e.Describe(&s.Client).Memory)
		held := m.Sum()
		if s.Killed.Load() || s.overfull.Load() {
			all -= held // it is about to go
			continue
		}
		sum += held
		if held > 0 && !s.Spared.Load() {
			holders = append(holders, holder{s, held})
		}
	}
	all = min(all, sum)
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.held, a.held) })
	freed := int64(0)
	for i := 0; i < len(holders) && all-freed > bound; i++ {
		h := &holders[i]
		m := h.memory(e.Describe(&h.Client).Memory)
		if look > 0 && all <= mostLeaving*bound && h.leaves(&m, look) {
			continue
		}
		freed += h.held
		switch {
		case 2*m.Sum() < h.held: // it was on its way when the list was made
			continue
		case h.refuseInput(&m), h.refuseWaiting(&m):
			e.taken.refused.Add(1)
		case look == 0, h.runsItsInput(&m):
			continue
		default:
			closed++
			e.evicted.Add(1)
			h.Kill()
		}
		e.taken.bytes.Add(h.held)
	}
	return closed
}
