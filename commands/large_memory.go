package commands

import (
	"math"
	"sync"
	"sync/atomic"
)

// largeReplies is the memory of replies that are copied and long: large collections and
// many keys of short values, and what scripts return. Who makes one asks for its memory
// first, and waits until there is room, in the order in which they came. Its pieces give
// memory back as they are sent. Nobody is closed for what is counted here, but who takes
// nothing of a reply while others wait has less time than write-timeout.
type largeReplies struct {
	// room is how many bytes such replies may take together.
	room func() int64
	// waiting is how many wait; it is for those who hold no lock.
	waiting atomic.Int32

	mu    sync.Mutex  // guards what follows
	held  int64       // bytes of replies that have not left, and those that are asked for
	queue []*largeAsk // those that wait, the first of them next
	ended bool        // nobody waits any more
}

// largeAsk waits for memory.
type largeAsk struct {
	size    int64
	granted chan struct{}
}

// ask waits for size bytes. However many these are, they are granted where no others are
// held. The caller has to end the result.
func (l *largeReplies) ask(size int64) *largeReply {
	l.mu.Lock()
	if r := l.takeLocked(size); r != nil {
		l.mu.Unlock()
		return r
	}
	a := &largeAsk{size: size, granted: make(chan struct{})}
	l.queue = append(l.queue, a)
	l.waiting.Store(int32(len(l.queue)))
	l.mu.Unlock()
	<-a.granted
	return &largeReply{all: l, left: size}
}

// take is ask for those who cannot wait: nil is nothing.
func (l *largeReplies) take(size int64) *largeReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(size)
}

func (l *largeReplies) takeLocked(size int64) *largeReply {
	if !l.ended && (len(l.queue) > 0 || !l.fits(size)) {
		return nil
	}
	l.held += size
	return &largeReply{all: l, left: size}
}

// fits reports whether size more bytes may be held. mu is held.
func (l *largeReplies) fits(size int64) bool { return l.held == 0 || l.held+size <= l.room() }

// Count implements [shared.Ledger]: it adds to the bytes that are held, and lets those go
// on for whom there is room.
func (l *largeReplies) Count(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += bytes
	if bytes < 0 {
		l.grant()
	}
}

// grant lets the first go on, while there is room or nobody is to wait. mu is held.
func (l *largeReplies) grant() {
	n := 0
	for ; n < len(l.queue) && (l.ended || l.fits(l.queue[n].size)); n++ {
		l.held += l.queue[n].size
		close(l.queue[n].granted)
		l.queue[n] = nil
	}
	if n > 0 {
		l.queue = l.queue[n:]
		l.waiting.Store(int32(len(l.queue)))
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
	l.grant()
}

// largeReply is the memory of one of them. It implements [shared.Ledger] for its pieces:
// what they take comes out of what was asked for, as long as that lasts. Count with a
// positive number, and end, are for the one who makes the reply.
type largeReply struct {
	all  *largeReplies
	left int64 // of what was asked for and has been granted
}

// Count implements [shared.Ledger].
func (r *largeReply) Count(bytes int64) {
	if bytes > 0 {
		own := min(bytes, r.left)
		r.left -= own
		bytes -= own
	}
	if bytes != 0 {
		r.all.Count(bytes)
	}
}

// end gives back what was asked for and is not needed. r may be nil.
func (r *largeReply) end() {
	if left := r.unused(); left > 0 {
		r.left = 0
		r.all.Count(-left)
	}
}

// unused is what has been granted and not been counted. r may be nil.
func (r *largeReply) unused() int64 {
	if r == nil {
		return 0
	}
	return r.left
}

// over reports whether all others hold more than there is room for: somebody's reply has
// become larger than it was thought to be.
func (r *largeReply) over() bool {
	l := r.all
	l.mu.Lock()
	defer l.mu.Unlock()
	others := l.held - r.left
	return !l.ended && others > 0 && others > l.room()
}

// takeTurn waits for the memory of the reply to p, which size says, and for one of slots.
// size may be nil, and the result is then: the reply is short for sure.
func (e *Engine) takeTurn(slots chan struct{}, p *Parked, size func(st Store) int) *largeReply {
	n := 0
	if size != nil {
		e.withStoreFor(p.session.id, func(st Store) { n = size(st) })
	}
	if n == 0 {
		slots <- struct{}{}
		return nil
	}
	memory := &largeReply{all: &e.large}
	if n > inlineReply {
		memory = e.large.ask(int64(min(n, maxReply)))
	}
	for {
		slots <- struct{}{}
		if p.gone.Load() || !memory.over() {
			return memory
		}
		<-slots
		memory.end()
		memory = e.large.ask(int64(min(n, maxReply)))
	}
}

// endTurn ends what takeTurn has begun.
func (e *Engine) endTurn(slots chan struct{}, memory *largeReply) {
	<-slots
	memory.end()
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
func (e *Engine) largeRoom() int64 {
	if e.opts.ScriptRoom != nil {
		if bound, kept := e.opts.ScriptRoom(); bound != math.MaxInt64 {
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
func (e *Engine) LargeReplies() int64 { return e.large.size() }

// Pressed implements [transport.Pressed]: somebody waits for the memory of replies.
func (e *Engine) Pressed() bool { return e.large.waiting.Load() > 0 }
