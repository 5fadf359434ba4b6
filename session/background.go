package session

import (
	"runtime"
	"sync"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// Spawn runs f on a new goroutine, and [Engine.Close] waits for it. Once Close has begun, Spawn
// does nothing, because no client is left.
func (e *background) Spawn(f func()) { e.spawn(f) }

// spawn implements Spawn, and reports whether f runs.
func (e *background) spawn(f func()) bool {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if e.closed {
		return false
	}
	e.slow.Go(f)
	return true
}

// SpawnWait implements [command.Work]: it is Spawn for work on a client that waits.
func (e *background) SpawnWait(f func()) {
	e.waits.add(1)
	ended := func() { e.waits.add(-1) }
	if !e.spawn(func() {
		defer ended()
		f()
	}) {
		ended()
	}
}

// SettleWaits returns when no work of SpawnWait is in progress. The caller must not be such work.
func (e *background) SettleWaits() { e.waits.await() }

// running counts work in progress. The zero value counts none.
type running struct {
	mu   sync.Mutex
	n    int           // the number of pieces of work in progress; guarded by mu
	idle chan struct{} // closed when n becomes 0; nil if no goroutine waits for that; guarded by mu
}

func (r *running) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n += n; r.n == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// await waits until no work is in progress.
func (r *running) await() {
	r.mu.Lock()
	if r.n == 0 {
		r.mu.Unlock()
		return
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	<-idle
}

// SpawnCall implements [command.Work]: it runs f on a goroutine with its own worker, which has
// entered the store. If much is true, for long work, f waits for its turn together with the
// ordinary commands of [Engine.Background].
func (e *Engine) SpawnCall(much bool, f func(c *command.Call)) {
	e.Spawn(func() {
		if much {
			e.slots <- struct{}{}
			defer func() { <-e.slots }()
		}
		e.withWorker(0, func(w *Worker) { f(&command.Call{Worker: &w.Worker}) })
	})
}

// maxSlow is the maximum number of commands of [Engine.Offload], such as KEYS, FLUSHALL, SAVE or a
// long SCAN, that run at once.
const maxSlow = 2

// maxFiles is the maximum number of commands that run at once and read or write the files of
// options. These commands wait for a disk and need little processor time.
const maxFiles = 4

// maxBackground returns the maximum number of ordinary commands that [Engine.Background] runs at
// once: half the number of processors, and at least 1. The event loops need the other half.
// Commands that lock many keys wait for each other anyway, so more of them would not help.
func maxBackground() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// takeTurn waits for one of slots and, for a long reply, until the memory of the reply to p is
// granted. The function size returns the number of bytes that the reply needs; a reply of more than
// [command.InlineReply] bytes is long. If size is nil or returns 0, memory is nil. If p is refused
// before its turn, ok is false and takeTurn has taken nothing. If ok is true, the caller must call
// endTurn.
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

// endTurn releases the slot and the memory that takeTurn has taken. memory may be nil.
func (e *Engine) endTurn(slots chan struct{}, memory *budget.Grant) {
	<-slots
	memory.End()
}

// LargeReplies returns the number of bytes that long copied replies take or have reserved. These
// bytes are a part of [Engine.ClientMemory].
func (e *Engine) LargeReplies() int64 { return e.Large.Size() }

// Pressed implements [transport.Pressed]: it reports whether a command waits for the memory of
// its reply.
func (e *Engine) Pressed() bool { return e.Large.Waiting.Load() > 0 }
