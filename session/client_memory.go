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

// refuseOverfull begins to throw the unfinished command away if [Engine.EvictClients] asks for
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
		return p.Begun() && held.Output == 0 && 2*held.Queued >= held.Sum()
	}
	return s.partial.Load() == 0 && held.Output == 0 && 2*held.Input >= held.Sum()
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
	return p != nil && held.Output == 0 && 2*held.Queued >= held.Sum() && p.Refuse(resp.ErrOOM)
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

// EvictClients takes memory from clients until what is kept for the others is within
// maxmemory-clients: from those first for whom most is kept, and never from those that
// asked to be spared (CLIENT NO-EVICT). A client that is sending a long command, or whose long
// command waits for its turn, is refused that, with the error of full memory; any other is closed.
// all is what is kept for all of them together, which is less than the sum where several wait for
// the same message, and more where the memory of a client that has left is still being freed: no
// other client is closed for that. The server calls it several times a second.
func (e *Engine) EvictClients(all int64) {
	bound := e.Limits().ClientMemory
	if bound <= 0 || all <= bound {
		return
	}
	type holder struct {
		*Session
		command.ClientMemory
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
			holders = append(holders, holder{s, m, held})
		}
	}
	all = min(all, sum)
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.held, a.held) })
	closed, refused, freed := 0, 0, int64(0)
	for i := 0; i < len(holders) && all-freed > bound; i++ {
		h := &holders[i]
		freed += h.held
		switch {
		case h.refuseInput(&h.ClientMemory), h.refuseWaiting(&h.ClientMemory):
			refused++
			continue
		case h.runsItsInput(&h.ClientMemory):
			continue
		}
		closed++
		e.evicted.Add(1)
		h.Kill()
	}
	if closed+refused > 0 {
		e.Log.Warn("took memory from the clients that held the most, to stay within maxmemory-clients",
			"closed", closed, "commands_refused", refused, "bytes", freed, "bound", bound)
	}
}
