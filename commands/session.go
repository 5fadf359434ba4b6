package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Session is what the server remembers of one connection. Fields without a note
// belong to the goroutine that feeds it; the others say who may touch them.
type Session struct {
	Client
	transactionState
	trackingState
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	standsFor *Session
	parked    atomic.Pointer[Parked] // set by the feeding goroutine only

	owed *owedReplies                  // of the last Feed, nil without any
	subs atomic.Pointer[subscriptions] // set by the feeding goroutine only

}

// identity is what a client calls itself. It is replaced, never changed.
type identity struct{ name, libName, libVer string }

// replyMode is the state of CLIENT REPLY.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // CLIENT REPLY SKIP itself is being answered with silence
	replySkip     // the command after it is
)

// ID is the number that CLIENT ID answers; it is never used twice.
func (s *Client) ID() int64 { return s.id }

// Kill ends the session: at its next Feed if it can be fed, at once if its peer
// does not read what it was sent. Any goroutine may call it.
func (s *Client) Kill() {
	s.killed.Store(true)
	s.peer.Abort()
}

// Name returns the name that CLIENT SETNAME gave. Any goroutine may call it.
func (s *Client) Name() string { return s.identity().name }

// identity returns what the client calls itself. Any goroutine may call it.
func (s *Client) identity() identity {
	if n := s.self.Load(); n != nil {
		return *n
	}
	return identity{}
}

// setName is CLIENT SETNAME.
func (s *Client) setName(name []byte) {
	n := s.identity()
	n.name = string(name)
	s.identify(n)
}

// identify sets what the client calls itself. Most say nothing, and cost nothing.
func (s *Client) identify(n identity) {
	if n == (identity{}) {
		s.self.Store(nil)
		return
	}
	s.self.Store(&n)
}

// selected is the database of the session.
func (s *Client) selected() int { return int(s.db.Load()) }

// reset returns the session to the state of a new connection (RESET), but for its
// subscriptions.
func (s *Session) reset(now limit.Instant) {
	s.setProtocol(2)
	s.reply = replyOn
	s.endTracking()
	s.db.Store(0)
	s.setName(nil)
	switch {
	case !s.engine.passwordSet():
		s.unlock()
	case s.authed:
		s.lock(now)
	}
}

// lock makes the session authenticate again before it may go on.
func (s *Client) lock(now limit.Instant) {
	s.authed, s.spent = false, 0
	s.locked.Store(int64(now))
}

// unlock admits the session, whatever becomes of the password.
func (s *Client) unlock() {
	s.authed = true
	s.locked.Store(0)
}

// admitted reports whether the session may run commands.
func (s *Client) admitted() bool { return s.authed || !s.server.passwordSet() }

// setProtocol switches between RESP2 and RESP3.
func (s *Client) setProtocol(proto int) {
	s.proto = proto
	s.protocol.Store(int32(proto))
}

// lastActive is the instant of the last Feed that got bytes.
func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }
