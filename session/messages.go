package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Post implements [command.Messages]: it queues the message b for the client cl. If f is not nil, its
// bytes are equal to b, and the queue refers to f instead of copying b. next says what the caller
// has to do with [Engine.Follow]: wake the client, disconnect it because it exceeds its output
// buffer limit, or nothing. memory is the change of the queue's memory in bytes, for
// [Engine.Posted]. It may be negative.
func (e *Engine) Post(cl *command.Client, b []byte, f *command.SharedFrame) (next command.Posted, memory int) {
	s := sessionOf(cl)
	s.outboxMu.Lock()
	defer s.outboxMu.Unlock()
	if s.outboxClosed {
		return command.PostedQuietly, 0
	}
	if s.outbox == nil {
		s.outbox = &outbox{}
	}
	memory = s.outbox.add(b, f)
	if l := &s.engine.Limits().Output; l.MayBeOver(s.outbox.size) && s.outbox.over(l, s.engine.Options.Now()) {
		s.outboxClosed = true
		return command.PostedTooMuch, memory - s.outbox.close()
	}
	if s.hasMessages.Swap(true) {
		return command.PostedQuietly, memory
	}
	return command.PostedFirst, memory
}

// Push implements [command.Messages]: it queues frame for the client, to be sent between replies, and
// wakes the client's transport. A client that exceeds the output buffer limit is disconnected.
func (e *Engine) Push(cl *command.Client, frame []byte) {
	next, memory := e.Post(cl, frame, nil)
	e.Posted(memory)
	e.Follow(cl, next)
}

// Follow implements [command.Messages]: it wakes or disconnects the client as the result next of
// [Engine.Post] requires. The caller holds no locks.
func (e *Engine) Follow(cl *command.Client, next command.Posted) {
	switch next {
	case command.PostedFirst:
		cl.Peer.Wake()
	case command.PostedTooMuch:
		sessionOf(cl).disconnect()
	}
}

// Posted implements [command.Messages]: it adds memory bytes to the statistics of queued messages.
func (e *Engine) Posted(memory int) { e.outbound.Add(int64(memory)) }

// TakeMessages implements [command.Messages]: it moves queued messages for the client of c into its
// reply, up to command.MaxReply bytes.
func (e *Engine) TakeMessages(c *command.Call) {
	sessionOf(c.Client).drainOutbox(workerOf(c.Worker), c.W, command.MaxReply)
}

// drainOutbox moves queued messages into out, up to most bytes, and reports whether messages are
// left. With a journal, the output then waits until the journal is persisted up to now.
func (s *Session) drainOutbox(w *Worker, out *resp.Writer, most int) (more bool) {
	if !s.hasMessages.Load() {
		return false
	}
	if w.Journal != nil { // a message may be about an effect that is not persisted yet
		w.answered = max(w.answered, s.engine.Options.Persistence.Position())
	}
	s.outboxMu.Lock()
	if s.outbox == nil { // the client has disconnected meanwhile
		s.hasMessages.Store(false)
		s.outboxMu.Unlock()
		return false
	}
	var memory int
	out.Buf, memory = s.outbox.take(out.Buf, most)
	more = s.outbox.size > 0
	if l := &s.engine.Limits().Output; s.outbox.size < l.Soft {
		s.outbox.since = 0
	}
	s.hasMessages.Store(more)
	s.partialMessage = more
	s.outboxMu.Unlock()
	s.engine.outbound.Add(-int64(memory))
	return more
}

// disconnect closes a session whose client does not read its messages, counts it as a slow
// reader, and logs that.
func (s *Session) disconnect() {
	s.engine.slowReaders.Add(1)
	s.engine.Log.Warn("closed a client with too many unread replies", "client", s.Addr())
	s.Peer.Abort()
}

// overdue reports whether the client exceeds the hard output buffer limit, or has exceeded the
// soft limit for too long, at the instant now.
func (s *Session) overdue(now limit.Instant) bool {
	if !s.hasMessages.Load() {
		return false
	}
	s.outboxMu.Lock()
	defer s.outboxMu.Unlock()
	return s.outbox != nil && s.outbox.over(&s.engine.Limits().Output, now)
}

// closeOutbox discards the messages of a client that has disconnected, and refuses later ones.
func (s *Session) closeOutbox() {
	s.outboxMu.Lock()
	memory := 0
	if s.outbox != nil {
		memory = s.outbox.close()
	}
	s.outbox, s.outboxClosed = nil, true
	s.outboxMu.Unlock()
	s.engine.outbound.Add(-int64(memory))
}
