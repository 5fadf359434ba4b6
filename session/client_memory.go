package session

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// memory returns the numbers of bytes that the server keeps for the client, by kind. topics is
// the number of bytes that its subscriptions take. Any goroutine may call memory.
func (s *Session) memory(topics int64) command.ClientMemory {
	input, output := s.Peer.Held()
	return command.ClientMemory{
		Input: input, Output: output, Messages: int64(s.unread()), Queued: s.kept.Load(), Topics: topics,
	}
}

// noteKept publishes the memory that the client's transaction, watched keys and parked command
// take, and the number of queued commands. It is called at the end of a turn or a wait, so a
// transaction that begins and ends within one turn does not count.
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

// refuseOverfull begins to discard the incomplete command if [Engine.RefuseCommands] or
// [Engine.EvictClients] has asked for that, and returns the number of bytes of the input that
// were consumed: 0 if the command is complete by now, or if there is nothing to refuse.
func (s *Session) refuseOverfull() (n int) {
	if !s.overfull.Load() {
		return 0
	}
	s.overfull.Store(false)
	limits, _ := s.frameLimits()
	n, _ = s.guard.GiveUp(resp.ErrOOM, limits)
	return n
}

// runsItsInput reports whether most of the client's memory is a command that is about to run or
// is running. Such memory is released soon.
func (s *Session) runsItsInput(held *command.ClientMemory) bool {
	if p := s.wait.Load(); p != nil {
		return p.Begun() && waitsMostly(held)
	}
	return s.partial.Load() == 0 && held.Output == 0 && 2*held.Input >= held.Sum()
}

// leaves reports whether most of the client's memory is replies that the client may be reading just
// now, so that the memory is freed soon. look is the number of the call of [Engine.EvictClients].
// leaves returns false once maxLooks consecutive calls have found mostly replies.
func (s *Session) leaves(held *command.ClientMemory, look int64) bool {
	if 2*held.Output < held.Sum() {
		return false
	}
	if s.lookedAt.Swap(look) != look-1 {
		s.leaving.Store(look)
	}
	return look-s.leaving.Load() < maxLooks
}

// waitsMostly reports whether most of held is the arguments of the parked command. Its arguments
// still count as input until the transport has processed the connection again.
func waitsMostly(held *command.ClientMemory) bool {
	return held.Output == 0 && 2*(held.Input+held.Queued) >= held.Sum()
}

// refuseInput refuses an incomplete command of more than minRefused bytes that is most of the
// client's memory, and reports whether it did. The session is woken and discards the command in
// its next turn. A client with unread replies is left out: its session is not fed, so it would
// keep the command.
func (s *Session) refuseInput(held *command.ClientMemory) bool {
	if s.partial.Load() == 0 || held.Output > 0 || held.Input <= minRefused || 2*held.Input < held.Sum() {
		return false
	}
	s.overfull.Store(true)
	s.Peer.Wake()
	return true
}

// refuseWaiting refuses a command that waits for its turn in the background and is most of the
// client's memory. It reports whether it has refused a command.
func (s *Session) refuseWaiting(held *command.ClientMemory) bool {
	p := s.wait.Load()
	return p != nil && waitsMostly(held) && p.Refuse(resp.ErrOOM)
}

// LargestBuffers returns the number of bytes in the largest input buffer and in the largest
// output buffer of all clients at the moment. Queued messages count as output. The two buffers may
// belong to different clients.
func (e *Engine) LargestBuffers() (input, output int64) {
	e.clients.mu.Lock()
	defer e.clients.mu.Unlock()
	for _, s := range e.clients.sessions {
		in, out := s.Peer.Held()
		input, output = max(input, in), max(output, out+int64(s.unread()))
	}
	return input, output
}

// ClientMemory returns the number of bytes that all sessions together take for subscriptions,
// queued messages, transactions, watched keys, parked commands, long replies, and the table of keys
// that clients have read. The buffers of connections are not included.
func (e *Engine) ClientMemory() int64 {
	return e.outbound.Load() + e.kept.Load() + e.Memory() + e.Large.Size()
}

// HoldLongInput begins a mode if hold is true, and ends it otherwise. In this mode, sessions with
// more than largeInput bytes of input wait, and their connections are not read. The end of the mode
// wakes these sessions.
func (e *Engine) HoldLongInput(hold bool) {
	if e.holding.Swap(hold) && !hold {
		e.wakeHeldBack()
	}
}

func (e *Engine) wakeHeldBack() {
	for _, s := range e.clients.list() {
		if s.heldBack.Swap(false) {
			s.Peer.Wake()
		}
	}
}

// holdsInput reports whether sessions with long input have to wait. A server that stops still
// runs the input that has arrived.
func (e *Engine) holdsInput() bool { return e.holding.Load() && !e.Draining.Load() }

// holdsBack reports whether n bytes of input have to wait because of [Engine.HoldLongInput], and
// marks a session that waits, so that it is woken. Input with a command that is to be refused
// does not wait, since the refusal frees memory.
func (s *Session) holdsBack(n int) bool {
	if n <= largeInput || !s.engine.holdsInput() || s.overfull.Load() {
		return false
	}
	s.heldBack.Store(true)
	return s.engine.holdsInput() || !s.heldBack.Swap(false) // HoldLongInput(false) may have been called since the first check
}

// EvictClients takes memory from clients until the memory of the other clients is within
// maxmemory-clients. It starts with the client that has the most, and leaves out replicas and
// clients that have set CLIENT NO-EVICT. If most of a client's memory is an incomplete command,
// or a long command that waits for its turn, EvictClients refuses that command with an OOM error.
// It closes any other client, unless the client is running its input. A client with unread
// replies is closed only after half a second, unless all clients together take more than
// maxLeaving times the bound.
//
// all is the memory of all clients together, in bytes. It is less than the sum over the clients
// if several clients wait for the same message. It is more than the sum while the memory of a
// disconnected client is still being freed; no other client is closed for that memory. The server
// calls EvictClients several times a second.
func (e *Engine) EvictClients(all int64) {
	// The numbers begin at 2, because a session that no look has found has the number 0.
	closed := e.takeMemory(all, 1+e.looks.Add(1))
	refused, freed := e.taken.refused.Swap(0), e.taken.bytes.Swap(0)
	if closed+refused > 0 {
		e.Log.Warn("took memory from the clients that held the most, to stay within maxmemory-clients",
			"closed", closed, "commands_refused", refused, "bytes", freed, "bound", e.Limits().ClientMemory)
	}
}

// RefuseCommands refuses commands as [Engine.EvictClients] does, but closes no client. all is the
// memory of all clients together, in bytes. The server calls RefuseCommands when the channel of
// [Engine.LongInput] receives, because clients may send faster than EvictClients is called.
func (e *Engine) RefuseCommands(all int64) { e.takeMemory(all, 0) }

// LongInput returns a channel that receives after a client has sent a part of a command that is
// longer than minRefused bytes.
func (e *Engine) LongInput() <-chan struct{} { return e.longInput }

// noteLongInput sends to the channel of [Engine.LongInput] if held, the number of bytes of an
// incomplete command that have arrived, is more than minRefused. It never blocks.
func (e *Engine) noteLongInput(held int) {
	if held <= minRefused {
		return
	}
	select {
	case e.longInput <- struct{}{}:
	default:
	}
}

// takeMemory does the work of [Engine.EvictClients], and returns the number of clients that it has
// closed. look is the number of the call of EvictClients. all is the number of bytes that all
// clients take. If maxmemory-clients is off or all does not exceed it, takeMemory does nothing. If
// look is 0, takeMemory closes no client. The number of refused commands, and the bytes of refused
// commands and closed clients, are added to e.taken.
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
			continue // a replica is not closed, because that would cause a full resynchronization; Redis does the same
		}
		m := s.memory(e.Describe(&s.Client).Memory)
		held := m.Sum()
		if s.Killed.Load() || s.overfull.Load() {
			all -= held // this memory is about to be freed, so it does not count
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
		if look > 0 && all <= maxLeaving*bound && h.leaves(&m, look) {
			continue
		}
		freed += h.held
		switch {
		case 2*m.Sum() < h.held: // the client has released most of the memory since the list was made
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
