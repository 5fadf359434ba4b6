package budget

import (
	"sync"
	"sync/atomic"
)

// Budget is the memory of replies that are copied and long: large collections and
// many keys of short values, and what scripts return. Who makes one asks for its memory
// first, and waits until there is room, in the order in which they came. Its pieces give
// memory back as they are sent. Nobody is closed for what is counted here, but who takes
// nothing of a reply while others wait has less time than write-timeout.
type Budget struct {
	// Room is how many bytes such replies may take together.
	Room func() int64
	// Waiting is how many wait; it is for those who hold no lock.
	Waiting atomic.Int32

	mu    sync.Mutex // guards what follows
	held  int64      // bytes of replies that have not left, and those that are asked for
	queue []*request // those that wait, the first of them next
	ended bool       // nobody waits any more
}

// Grant is the memory of one of them. It implements [shared.Ledger] for its pieces:
// what they take comes out of what was asked for, as long as that lasts. Count with a
// positive number, and end, are for the one who makes the reply.
type Grant struct {
	All  *Budget
	left int64 // of what was asked for and has been granted
}

// request waits for memory.
type request struct {
	size    int64
	granted chan struct{}
}

// Ask waits for size bytes. However many these are, they are granted where no others are
// held. The caller has to end the result.
func (l *Budget) Ask(size int64) *Grant {
	l.mu.Lock()
	if r := l.takeLocked(size); r != nil {
		l.mu.Unlock()
		return r
	}
	a := &request{size: size, granted: make(chan struct{})}
	l.queue = append(l.queue, a)
	l.Waiting.Store(int32(len(l.queue)))
	l.mu.Unlock()
	<-a.granted
	return &Grant{All: l, left: size}
}

// Take is ask for those who cannot wait: nil is nothing.
func (l *Budget) Take(size int64) *Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(size)
}

func (l *Budget) takeLocked(size int64) *Grant {
	if !l.ended && (len(l.queue) > 0 || !l.fits(size)) {
		return nil
	}
	l.held += size
	return &Grant{All: l, left: size}
}

// fits reports whether size more bytes may be held. mu is locked.
func (l *Budget) fits(size int64) bool { return l.held == 0 || l.held+size <= l.Room() }

// Count implements [shared.Ledger]: it adds to the bytes that are locked, and lets those go
// on for whom there is room.
func (l *Budget) Count(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += bytes
	if bytes < 0 {
		l.grant()
	}
}

// grant lets the first go on, while there is room or nobody is to wait. mu is locked.
func (l *Budget) grant() {
	n := 0
	for ; n < len(l.queue) && (l.ended || l.fits(l.queue[n].size)); n++ {
		l.held += l.queue[n].size
		close(l.queue[n].granted)
		l.queue[n] = nil
	}
	if n > 0 {
		l.queue = l.queue[n:]
		l.Waiting.Store(int32(len(l.queue)))
	}
}

// Size is how many bytes are held.
func (l *Budget) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// End lets everybody go on.
func (l *Budget) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.grant()
}

// Count implements [shared.Ledger].
func (r *Grant) Count(bytes int64) {
	if bytes > 0 {
		own := min(bytes, r.left)
		r.left -= own
		bytes -= own
	}
	if bytes != 0 {
		r.All.Count(bytes)
	}
}

// End gives back what was asked for and is not needed. r may be nil.
func (r *Grant) End() {
	if left := r.Unused(); left > 0 {
		r.left = 0
		r.All.Count(-left)
	}
}

// Unused is what has been granted and not been counted. r may be nil.
func (r *Grant) Unused() int64 {
	if r == nil {
		return 0
	}
	return r.left
}

// Over reports whether all others hold more than there is room for: somebody's reply has
// become larger than it was thought to be.
func (r *Grant) Over() bool {
	l := r.All
	l.mu.Lock()
	defer l.mu.Unlock()
	others := l.held - r.left
	return !l.ended && others > 0 && others > l.Room()
}
