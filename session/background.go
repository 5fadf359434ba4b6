package session

import (
	"runtime"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// Spawn runs f on a goroutine that Close waits for. After Close nothing is run:
// no client is left that could miss it.
func (e *background) Spawn(f func()) {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if !e.closed {
		e.slow.Go(f)
	}
}

// SpawnCall implements [command.Host].
func (e *Engine) SpawnCall(much bool, f func(c *command.Call)) {
	e.Spawn(func() {
		if much {
			e.slots <- struct{}{}
			defer func() { <-e.slots }()
		}
		e.withWorker(0, func(l *Worker) { f(&command.Call{Worker: &l.Worker}) })
	})
}

// maxSlow is how many slow commands (KEYS, FLUSHALL, a long SCAN) run at once.
const maxSlow = 2

// maxFiles is how many commands that read or write files of options run at once. They wait for a disk,
// so that a processor is not what they need.
const maxFiles = 4

// maxBackground is how many commands run in the background at once: half of what processors
// there are, since the loops need theirs, and all that hold many keys wait for each
// other anyway.
func maxBackground() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// takeTurn waits for the memory of the reply to p, which size says, and for one of slots.
// size may be nil, and the result is then: the reply is short for sure. It is not ok, and nothing is
// taken, if p has been refused before its turn came.
func (e *Engine) takeTurn(slots chan struct{}, p *command.Wait, size func(st env.Store) int) (memory *budget.Grant, ok bool) {
	take := func() bool {
		select {
		case slots <- struct{}{}:
			return true
		case <-p.Unbegun:
			return false
		}
	}
	n := 0
	if size != nil {
		e.WithStore(p.Client.ID, func(st env.Store) { n = size(st) })
	}
	if n == 0 {
		return nil, take()
	}
	memory = &budget.Grant{All: &e.Large}
	if n > command.InlineReply {
		memory = e.Large.Ask(int64(min(n, command.MaxReply)))
	}
	for {
		if !take() {
			memory.End()
			return nil, false
		}
		if p.Gone.Load() || !memory.Over() {
			return memory, true
		}
		<-slots
		memory.End()
		memory = e.Large.Ask(int64(min(n, command.MaxReply)))
	}
}

// endTurn ends what takeTurn has begun.
func (e *Engine) endTurn(slots chan struct{}, memory *budget.Grant) {
	<-slots
	memory.End()
}

// LargeReplies is how many bytes copied replies take that are long, or will take: a part of
// what [Engine.ClientMemory] says.
func (e *Engine) LargeReplies() int64 { return e.Large.Size() }

// Pressed implements [transport.Pressed]: somebody waits for the memory of replies.
func (e *Engine) Pressed() bool { return e.Large.Waiting.Load() > 0 }
