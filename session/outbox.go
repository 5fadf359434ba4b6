package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

const (
	// partMost is how large a piece of an outbox grows. Pieces are freed one by one as
	// they are sent.
	partMost = 64 << 10
	// keptPart is how much of its room an empty outbox keeps, so that a client that is
	// told something small now and then costs no allocation.
	keptPart = 1 << 10
	// partCost is what a piece takes beside its bytes.
	partCost = 48
)

// outbox is what other goroutines have left for a client, in order. It is guarded by
// the session's mu.
type outbox struct {
	parts []part
	size  int           // bytes to be sent, shared ones included
	since limit.Instant // when size went beyond the soft limit, 0 if it is not there
}

// part is a piece of an outbox: bytes of its own, or those of a shared message.
type part struct {
	b    []byte
	from int // what is before has been sent
	of   *command.SharedFrame
}

// add appends a message and returns how much memory that takes; f is nil for one that
// is to be copied.
func (o *outbox) add(b []byte, f *command.SharedFrame) (memory int) {
	o.size += len(b)
	if f != nil {
		f.Refs.Add(1)
		o.parts = append(o.parts, part{b: f.Bytes, of: f})
		return partCost
	}
	if n := len(o.parts); n == 0 || o.parts[n-1].of != nil || len(o.parts[n-1].b) >= partMost {
		o.parts = append(o.parts, part{})
	}
	last := &o.parts[len(o.parts)-1]
	last.b = append(last.b, b...)
	return len(b)
}

// take moves up to most bytes to dst, and returns the memory that this freed.
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

// release gives up a share in a message, and returns the memory that this freed.
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

// drop forgets the first n pieces, which have been sent.
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

// close empties the outbox and returns the memory that this freed.
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

// over reports whether the outbox is beyond its limit at now.
func (o *outbox) over(l *command.OutputLimit, now limit.Instant) bool {
	if l.Soft <= 0 || o.size < l.Soft {
		o.since = 0
	} else if o.since == 0 {
		o.since = max(now, 1)
	}
	return l.Hard > 0 && o.size >= l.Hard || o.since != 0 && now.Sub(o.since) > l.For
}

// Post implements [command.Host].
func (e *Engine) Post(cl *command.Client, b []byte, f *command.SharedFrame) (next command.Posted, memory int) {
	s := sessionOf(cl)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return command.PostedQuietly, 0
	}
	if s.outbox == nil {
		s.outbox = &outbox{}
	}
	memory = s.outbox.add(b, f)
	if l := &s.engine.Limits().Output; l.MayBeOver(s.outbox.size) && s.outbox.over(l, s.engine.Opts.Now()) {
		s.gone = true
		return command.PostedTooMuch, memory - s.outbox.close()
	}
	if s.mail.Swap(true) {
		return command.PostedQuietly, memory
	}
	return command.PostedFirst, memory
}

// Push implements [command.Host]: it adds bytes to what the client is sent between replies
// and wakes its transport. A client that leaves more than the output limit unread is cut
// off.
func (e *Engine) Push(cl *command.Client, frame []byte) {
	next, memory := e.Post(cl, frame, nil)
	e.Posted(memory)
	e.Follow(cl, next)
}

// Push sends a client something between replies. Any goroutine may call it.
func (s *Session) Push(frame []byte) { s.engine.Push(&s.Client, frame) }

// Follow implements [command.Host].
func (e *Engine) Follow(cl *command.Client, next command.Posted) {
	switch next {
	case command.PostedFirst:
		cl.Peer.Wake()
	case command.PostedTooMuch:
		sessionOf(cl).cutOff()
	}
}

// Posted implements [command.Host].
func (e *Engine) Posted(memory int) { e.outbound.Add(int64(memory)) }

// TakeMessages implements [command.Host].
func (e *Engine) TakeMessages(c *command.Call) {
	sessionOf(c.Client).takeMail(laneOf(c.Worker), c.W, command.MaxReply)
}

// cutOff ends a session that does not read what others tell it.
func (s *Session) cutOff() {
	s.engine.slowReaders.Add(1)
	s.engine.Log.Warn("closed a client that leaves too much unread", "client", s.Addr())
	s.Peer.Abort()
}

// takeMail moves what other goroutines left into the writer, up to most bytes, and
// reports whether there is more.
func (s *Session) takeMail(l *Lane, w *resp.Writer, most int) (more bool) {
	if !s.mail.Load() {
		return false
	}
	if l.Journal != nil { // what is told may be of what has yet to be kept
		l.answered = max(l.answered, s.engine.Opts.Persistence.Position())
	}
	s.mu.Lock()
	if s.outbox == nil { // the client is gone
		s.mail.Store(false)
		s.mu.Unlock()
		return false
	}
	var memory int
	w.Buf, memory = s.outbox.take(w.Buf, most)
	more = s.outbox.size > 0
	if l := &s.engine.Limits().Output; s.outbox.size < l.Soft {
		s.outbox.since = 0
	}
	s.mail.Store(more)
	s.midMail = more
	s.mu.Unlock()
	s.engine.outbound.Add(-int64(memory))
	return more
}

// closeOutbox throws away what waits for a client that is gone.
func (s *Session) closeOutbox() {
	s.mu.Lock()
	memory := 0
	if s.outbox != nil {
		memory = s.outbox.close()
	}
	s.outbox, s.gone = nil, true
	s.mu.Unlock()
	s.engine.outbound.Add(-int64(memory))
}

// outstays reports whether the client has left too much unread for too long.
func (s *Session) outstays(now limit.Instant) bool {
	if !s.mail.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outbox != nil && s.outbox.over(&s.engine.Limits().Output, now)
}

// unread is how many bytes wait for the client. Any goroutine may call it.
func (s *mailbox) unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox == nil {
		return 0
	}
	return s.outbox.size
}
