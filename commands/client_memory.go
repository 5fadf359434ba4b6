package commands

import (
	"cmp"
	"slices"
)

// clientMemory is about how many bytes the server keeps for one client.
type clientMemory struct {
	input    int64 // what arrived and has not been run
	output   int64 // replies that wait to leave
	messages int64 // what others have told it and it has not taken
	queued   int64 // commands that wait for EXEC, and watched keys
	topics   int64 // what it has subscribed to
}

func (m clientMemory) sum() int64 { return m.input + m.output + m.messages + m.queued + m.topics }

// memory is what is kept for the client. Any goroutine may call it.
func (s *Session) memory() clientMemory {
	input, output := s.peer.Held()
	topics := int64(0)
	if subs := s.subs.Load(); subs != nil {
		topics = subs.cost.Load()
	}
	topics += int64(s.tracks.Load().cost())
	return clientMemory{input, output, int64(s.unread()), s.kept.Load(), topics}
}

// noteKept tells others what a transaction and the watched keys take. An EXEC that came
// in the same turn as its MULTI is not worth a word.
func (s *Session) noteKept() {
	kept, queued := int64(s.watching), int32(0)
	if s.tx != nil && s.tx.active {
		kept, queued = kept+int64(s.tx.bytes), int32(1+len(s.tx.queue))
	}
	if p := s.parked.Load(); p != nil {
		kept += int64(p.kept)
	}
	if was := s.kept.Load(); kept != was {
		s.kept.Store(kept)
		s.engine.kept.Add(kept - was)
	}
	if queued != s.queued.Load() {
		s.queued.Store(queued)
	}
}

// EvictClients closes clients until what is kept for the others is within
// maxmemory-clients: those first for whom most is kept, and never those that asked to
// be spared (CLIENT NO-EVICT). all is what is kept for all of them together, which is
// less than the sum where several wait for the same message, and more where somebody has
// left whose memory is still being freed: nobody else is closed for that. The server
// calls it several times a second.
func (e *Engine) EvictClients(all int64) {
	bound := e.Limits().ClientMemory
	if bound <= 0 || all <= bound {
		return
	}
	type holder struct {
		*Session
		held int64
	}
	var holders []holder
	sum := int64(0)
	for _, s := range e.clients.list() {
		held := s.memory().sum()
		if s.killed.Load() {
			all -= held // it is about to go
			continue
		}
		sum += held
		if held > 0 && !s.spared.Load() {
			holders = append(holders, holder{s, held})
		}
	}
	all = min(all, sum)
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.held, a.held) })
	closed, freed := 0, int64(0)
	for ; closed < len(holders) && all-freed > bound; closed++ {
		freed += holders[closed].held
		e.evicted.Add(1)
		holders[closed].Kill()
	}
	if closed > 0 {
		e.log.Warn("closed the clients for whom most was kept, to be within maxmemory-clients",
			"clients", closed, "bytes", freed, "bound", bound)
	}
}
