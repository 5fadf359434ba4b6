package commands

import "sync"

// largeReplies is the memory of replies that are copied beside the loops: large
// collections of short elements. One is made at a time, and only while those that have
// not left yet take less than their share. Whoever has to wait is answered later, and
// nobody is closed for it. It implements shared.Ledger, for the pieces of such replies.
type largeReplies struct {
	mu    sync.Mutex // guards what follows
	room  *sync.Cond // signalled when one may go on
	held  int64      // bytes of pieces that have not left
	busy  bool       // one is being made
	ended bool       // nobody waits any more
}

func newLargeReplies() *largeReplies {
	l := &largeReplies{}
	l.room = sync.NewCond(&l.mu)
	return l
}

// enter waits for its turn to make a reply while less than most bytes are held.
func (l *largeReplies) enter(most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.busy || l.held >= most) && !l.ended {
		l.room.Wait()
	}
	l.busy = true
}

// leave ends a turn.
func (l *largeReplies) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	l.room.Signal()
}

// Count implements shared.Ledger.
func (l *largeReplies) Count(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += bytes
	if bytes < 0 && !l.busy {
		l.room.Signal()
	}
}

// size is how many bytes are held.
func (l *largeReplies) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// end lets everybody go on.
func (l *largeReplies) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.room.Broadcast()
}

const (
	// unboundLarge is the share of large replies where clients have no bound, and
	// leastLarge what it is at least.
	unboundLarge = 256 << 20
	leastLarge   = 1 << 20
)

// largeShare is how many bytes of large replies may be held before the next is begun:
// half of maxmemory-clients.
func (e *Engine) largeShare() int64 {
	bound := e.Limits().ClientMemory
	if bound <= 0 {
		return unboundLarge
	}
	return max(bound/2, leastLarge)
}
