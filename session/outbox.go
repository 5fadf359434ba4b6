package session

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
)

const (
	// maxPart is how large a piece of an outbox grows. Each piece is freed as soon as it was sent.
	maxPart = 64 << 10
	// keptPart is how much memory an empty outbox keeps, so that short messages now and then cost
	// no allocation.
	keptPart = 1 << 10
	// partCost is the memory of a piece in addition to its bytes.
	partCost = 48
)

// mailbox has the messages of other goroutines for a client.
type mailbox struct {
	partialMessage bool // a message was sent in part
	outboxMu       sync.Mutex
	outbox         *outbox // guarded by outboxMu: messages that are sent between replies; nil before the first
	hasMessages    atomic.Bool
	outboxClosed   bool // guarded by outboxMu: messages are no longer accepted
}

// outbox is a queue of messages that other goroutines have left for a client, in order. It is
// guarded by the session's outboxMu.
type outbox struct {
	parts []part
	size  int           // bytes to be sent, shared ones included
	since limit.Instant // when size exceeded the soft limit, 0 if it does not
}

// part is a piece of an outbox: either bytes of its own, or a shared message.
type part struct {
	b    []byte
	from int // the bytes before it were sent
	of   *command.SharedFrame
}

// add appends a message and returns how much memory that takes. f is nil for a message that is
// copied.
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

// take moves up to most bytes to dst, and returns how much memory that frees.
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

// release drops the reference to a shared message, and returns how much memory that frees.
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

// drop removes the first n pieces, which were sent.
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

// close empties the outbox and returns how much memory that frees.
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

// over reports whether the outbox exceeds its limit at the instant now.
func (o *outbox) over(l *env.OutputLimit, now limit.Instant) bool {
	if l.Soft <= 0 || o.size < l.Soft {
		o.since = 0
	} else if o.since == 0 {
		o.since = max(now, 1)
	}
	return l.Hard > 0 && o.size >= l.Hard || o.since != 0 && now.Sub(o.since) > l.For
}

// unread returns how many bytes are queued for the client. Any goroutine may call it.
func (s *mailbox) unread() int {
	s.outboxMu.Lock()
	defer s.outboxMu.Unlock()
	if s.outbox == nil {
		return 0
	}
	return s.outbox.size
}
