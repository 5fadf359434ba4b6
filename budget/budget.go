package budget

import (
	"sync"
	"sync/atomic"
)

// Budget bounds the memory of replies that are long copies: of large collections, of many short
// values, and of the results of scripts. A command asks for the memory of its reply before it
// builds the reply, and waits in order of arrival until there is room. Each piece of a reply
// returns its memory when it has been sent. Any goroutine may use a Budget.
type Budget struct {
	// Room returns the number of bytes that all such replies together may take.
	Room func() int64
	// Waiting is the number of commands that wait for memory. Reading it needs no lock.
	Waiting atomic.Int32

	mu    sync.Mutex // mu guards the fields below
	held  int64      // number of bytes of replies that were not sent yet, and granted bytes that no piece has taken
	queue []*request // the waiting requests in the order of their arrival
	ended bool       // End was called, so every request is granted at once
}

// Grant is the memory that was granted for one reply. A Grant is a Ledger of package shared for the
// pieces of the reply: their bytes are taken from the granted ones until these are used up, and
// then from the Budget. Any goroutine may call Count with a negative number; otherwise only the
// goroutine that builds the reply may use a Grant.
type Grant struct {
	All  *Budget
	left int64 // number of granted bytes that no piece has taken
}

// request is a command that waits for memory. granted is closed when the command gets the memory.
type request struct {
	size    int64
	granted chan struct{}
}

// Ask waits until size bytes are granted. If no other bytes are held, any size is granted. The
// caller must call End of the result when the reply is built.
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

// Take does what [Budget.Ask] does, without waiting: it returns nil if there is no room, or if
// other commands wait.
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

// fits reports whether size more bytes may be held: if there is room for them, or if no bytes are
// held, so that a request larger than the budget does not wait forever. b.mu is held.
func (b *Budget) fits(size int64) bool { return b.held == 0 || b.held+size <= b.Room() }

// Count makes the Budget a Ledger of package shared. It adds bytes to the bytes that are held. If
// bytes is negative, it also grants the waiting requests for which there is room now.
func (b *Budget) Count(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += bytes
	if bytes < 0 {
		b.grant()
	}
}

// grant grants waiting requests in their order while there is room; all of them after End. b.mu is
// held.
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

// Size returns the number of bytes that are held.
func (b *Budget) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// End grants all waiting requests, and from then on every request at once, because the server
// stops.
func (b *Budget) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.grant()
}

// Count makes the Grant a Ledger of package shared. A positive number is taken from the granted
// bytes as far as possible. The rest, or a negative number, is counted in the Budget.
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

// End returns the granted bytes that no piece has taken to the Budget. g may be nil.
func (g *Grant) End() {
	if left := g.Unused(); left > 0 {
		g.left = 0
		g.All.Count(-left)
	}
}

// Unused returns the number of granted bytes that no piece has taken. g may be nil.
func (g *Grant) Unused() int64 {
	if g == nil {
		return 0
	}
	return g.left
}

// Over reports whether the other replies and the pieces of this one hold more bytes than there is
// room for, because a reply has become larger than its command had asked for. Over returns false if
// they hold no bytes, and after [Budget.End].
func (g *Grant) Over() bool {
	b := g.All
	b.mu.Lock()
	defer b.mu.Unlock()
	others := b.held - g.left
	return !b.ended && others > 0 && others > b.Room()
}
