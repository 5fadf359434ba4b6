package session

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
)

const (
	// maxPart is the number of bytes from which a piece of an outbox does not grow any more. Each
	// piece is freed as soon as it was sent.
	maxPart = 64 << 10
	// keptPart is the maximum number of bytes that an empty outbox keeps allocated, so that
	// occasional short messages need no allocation.
	keptPart = 1 << 10
	// partCost is the memory in bytes that a shared message in an outbox takes in addition to its
	// own bytes.
	partCost = 48
)

// mailbox has the messages that other goroutines have queued for a client.
type mailbox struct {
	partialMessage bool // not all messages were sent, so the last one that was sent may be incomplete
	outboxMu       sync.Mutex
	outbox         *outbox // messages that are sent between replies; nil before the first message; guarded by outboxMu
	hasMessages    atomic.Bool
	outboxClosed   bool // whether messages are no longer accepted; guarded by outboxMu
}

// outbox is a queue of messages that other goroutines have queued for a client. The messages are
// sent in the order of their arrival. The session's outboxMu guards the outbox.
type outbox struct {
	parts []part
	size  int           // number of bytes to be sent, including the bytes of shared messages
	since limit.Instant // the instant at which size was found to have reached the soft limit, 0 if it is below
}

// part is a piece of an outbox. It has either bytes of its own or a shared message.
type part struct {
	b    []byte
	from int // number of bytes of b that were sent
	of   *command.SharedFrame
}

// add appends a message to the outbox and returns the number of bytes of memory that the message
// takes. If f is nil, add copies b. Otherwise it takes a reference to f, and the bytes of f,
// which are counted once by the sender, are not included.
func (o *outbox) add(b []byte, f *command.SharedFrame) (memory int) {
	o.size += len(b)
	if f != nil {
		f.Refs.Add(1)
		o.parts = append(o.parts, part{b: f.Bytes, of: f})
		return partCost
	}
	if n := len(o.parts); n == 0 || o.parts[n-1].of != nil || len(o.parts[n-1].b) >= maxPart {
		o.parts = append(o.parts, part{})
	}
	last := &o.parts[len(o.parts)-1]
	last.b = append(last.b, b...)
	return len(b)
}

// take moves up to most bytes from the outbox to the end of dst, and returns the new slice and
// the number of bytes of memory that were freed.
func (o *outbox) take(dst []byte, most int) (out []byte, memory int) {
	done := 0
	for ; done < len(o.parts) && most > 0; done++ {
		p := &o.parts[done]
		n := min(most, len(p.b)-p.from)
		dst = append(dst, p.b[p.from:p.from+n]...)
		p.from, most, o.size = p.from+n, most-n, o.size-n
		if p.of == nil {
			memory += n
		}
		if p.from < len(p.b) {
			break
		}
		memory += p.release()
	}
	o.drop(done)
	return dst, memory
}

// release drops the reference of p to a shared message, and returns the number of bytes of memory
// that this frees: 0 if p has no shared message.
func (p *part) release() (memory int) {
	if p.of == nil {
		return 0
	}
	memory = partCost
	if p.of.Refs.Add(-1) == 0 {
		memory += len(p.of.Bytes)
	}
	return memory
}

// drop removes the first n pieces, which were sent. It keeps the memory of a small last piece for
// later messages.
func (o *outbox) drop(n int) {
	if n == 0 {
		return
	}
	last := o.parts[n-1]
	rest := copy(o.parts, o.parts[n:])
	clear(o.parts[rest:])
	o.parts = o.parts[:rest]
	switch {
	case rest > 0:
	case last.of == nil && cap(last.b) <= keptPart:
		o.parts = append(o.parts, part{b: last.b[:0]})
	default:
		o.parts = nil
	}
}

// close empties the outbox and returns the number of bytes of memory that this frees.
func (o *outbox) close() (memory int) {
	for i := range o.parts {
		if p := &o.parts[i]; p.of == nil {
			memory += len(p.b) - p.from
		} else {
			memory += p.release()
		}
	}
	*o = outbox{}
	return memory
}

// over reports whether the outbox exceeds the limit l at the instant now: its size has reached
// l.Hard, or has been at least l.Soft for longer than l.For. over also updates o.since. A limit of
// 0 is no limit.
func (o *outbox) over(l *env.OutputLimit, now limit.Instant) bool {
	if l.Soft <= 0 || o.size < l.Soft {
		o.since = 0
	} else if o.since == 0 {
		o.since = max(now, 1)
	}
	return l.Hard > 0 && o.size >= l.Hard || o.since != 0 && now.Sub(o.since) > l.For
}

// unread returns the number of bytes that are queued for the client. Any goroutine may call it.
func (s *mailbox) unread() int {
	s.outboxMu.Lock()
	defer s.outboxMu.Unlock()
	if s.outbox == nil {
		return 0
	}
	return s.outbox.size
}
