package commands

import (
	"math"

	"github.com/cellserver/cellserver/commands/budget"
	"github.com/cellserver/cellserver/commands/command"
)

// takeTurn waits for the memory of the reply to p, which size says, and for one of slots.
// size may be nil, and the result is then: the reply is short for sure.
func (e *Engine) takeTurn(slots chan struct{}, p *command.Wait, size func(st command.Store) int) *budget.Grant {
	n := 0
	if size != nil {
		e.WithStore(p.Client.Id, func(st command.Store) { n = size(st) })
	}
	if n == 0 {
		slots <- struct{}{}
		return nil
	}
	memory := &budget.Grant{All: &e.large}
	if n > command.InlineReply {
		memory = e.large.Ask(int64(min(n, command.MaxReply)))
	}
	for {
		slots <- struct{}{}
		if p.Gone.Load() || !memory.Over() {
			return memory
		}
		<-slots
		memory.End()
		memory = e.large.Ask(int64(min(n, command.MaxReply)))
	}
}

// endTurn ends what takeTurn has begun.
func (e *Engine) endTurn(slots chan struct{}, memory *budget.Grant) {
	<-slots
	memory.End()
}

const (
	// unboundLarge is what large replies may take together where memory has no bound, and
	// leastLarge what they may take in any case.
	unboundLarge = 256 << 20
	leastLarge   = 1 << 20
)

// largeRoom is how many bytes of large replies there may be: two thirds of what the
// process may take beside the keys. The rest is for scripts, for the end of each reply,
// and for garbage.
func largeRoom(e *command.Server) int64 {
	if e.Opts.ScriptRoom != nil {
		if bound, kept := e.Opts.ScriptRoom(); bound != math.MaxInt64 {
			return max((bound-kept)/3*2, leastLarge)
		}
	}
	if bound := e.Limits().ClientMemory; bound > 0 {
		return max(bound/2, leastLarge)
	}
	return unboundLarge
}

// LargeReplies is how many bytes copied replies take that are long, or will take: a part of
// what [Engine.Beside] says.
func (e *Engine) LargeReplies() int64 { return e.large.Size() }

// Pressed implements [transport.Pressed]: somebody waits for the memory of replies.
func (e *Engine) Pressed() bool { return e.large.Waiting.Load() > 0 }
