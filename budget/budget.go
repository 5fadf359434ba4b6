package budget

import (
	"sync"
	"sync/atomic"
)

// Budget bounds the memory of long replies that are copies: large collections, many keys of short
// values, and the results of scripts. A command asks for the memory of its reply before it makes the
// reply, and waits in order of arrival until there is room. Each piece returns its memory once it is
// sent. No client is closed for memory that is counted here, but a client that reads nothing of its
// reply while others wait has less time than write-timeout.
type Budget struct {
	// Room returns the bytes that all such replies may take together.
	Room func() int64
	// Waiting is the number of waiting commands. Reading it needs no lock.
	Waiting atomic.Int32

	mu    sync.Mutex // guards what follows
	held  int64      // bytes of replies that are not sent, and bytes that are granted
	queue []*request // the next to be granted first
	ended bool       // every request is granted at once
}

// Grant is the memory of one reply. It implements [shared.Ledger] for the pieces of the reply: their
// bytes come out of the granted ones while those last. Only the goroutine that makes the reply may call
// Count with a positive number, or End.
type Grant struct {
	All  *Budget
	left int64 // granted bytes that no piece has taken
}

// request waits for memory.
type request struct {
	size    int64
	granted chan struct{}
}

// Ask waits for size bytes. Any size is granted while no other bytes are held. The caller must call End
// of the result.
func (b *Budget) Ask(size int64) *Grant {
	b.mu.Lock()
	if r := b.takeLocked(size); r != nil {
		b.mu.Unlock()
		return r
	}
	a := &request{size: size, granted: make(chan struct{})}
	b.queue = append(b.queue, a)
	b.Waiting.Store(int32(len(b.queue)))
	b.mu.Unlock()
	<-a.granted
	return &Grant{All: b, left: size}
}

// Take is Ask without waiting. It returns nil if there is no room.
func (b *Budget) Take(size int64) *Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(size)
}

func (b *Budget) takeLocked(size int64) *Grant {
	if !b.ended && (len(b.queue) > 0 || !b.fits(size)) {
		return nil
	}
	b.held += size
	return &Grant{All: b, left: size}
}

// fits reports whether size more bytes may be held. The caller holds mu.
func (b *Budget) fits(size int64) bool { return b.held == 0 || b.held+size <= b.Room() }

// Count implements [shared.Ledger]: it adds to the bytes that are held. If the number is negative, it
// grants the requests that fit then.
func (b *Budget) Count(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += bytes
	if bytes < 0 {
		b.grant()
	}
}

// grant grants requests from the first on while they fit, or all of them after End. The caller holds mu.
func (b *Budget) grant() {
	n := 0
	for ; n < len(b.queue) && (b.ended || b.fits(b.queue[n].size)); n++ {
		b.held += b.queue[n].size
		close(b.queue[n].granted)
		b.queue[n] = nil
	}
	if n > 0 {
		b.queue = b.queue[n:]
		b.Waiting.Store(int32(len(b.queue)))
	}
}

// Size returns the bytes that are held.
func (b *Budget) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// End grants all requests, those of the future too.
func (b *Budget) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.grant()
}

// Count implements [shared.Ledger].
func (g *Grant) Count(bytes int64) {
	if bytes > 0 {
		own := min(bytes, g.left)
		g.left -= own
		bytes -= own
	}
	if bytes != 0 {
		g.All.Count(bytes)
	}
}

// End returns the granted bytes that no piece has taken. g may be nil.
func (g *Grant) End() {
	if left := g.Unused(); left > 0 {
		g.left = 0
		g.All.Count(-left)
	}
}

// Unused returns the granted bytes that no piece has taken. g may be nil.
func (g *Grant) Unused() int64 {
	if g == nil {
		return 0
	}
	return g.left
}

// Over reports whether all other replies hold more than there is room for: one of them has become
// larger than its command had asked for.
func (g *Grant) Over() bool {
	b := g.All
	b.mu.Lock()
	defer b.mu.Unlock()
	others := b.held - g.left
	return !b.ended && others > 0 && others > b.Room()
}
