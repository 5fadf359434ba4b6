package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Session is what the server remembers of one connection. Fields without a note
// belong to the goroutine that feeds it; the others say who may touch them.
type Session struct {
	command.Client
	transactionState
	trackingState
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	standsFor *Session
	parked    atomic.Pointer[command.Wait] // set by the feeding goroutine only

	owed *owedReplies                  // of the last Feed, nil without any
	subs atomic.Pointer[subscriptions] // set by the feeding goroutine only
}

// reset returns the session to the state of a new connection (RESET), but for its
// subscriptions.
func (s *Session) reset(now limit.Instant) {
	s.SetProtocol(2)
	s.Reply = command.ReplyOn
	s.endTracking()
	s.Db.Store(0)
	s.SetName(nil)
	switch {
	case !s.engine.PasswordSet():
		s.Unlock()
	case s.Authed:
		s.Lock(now)
	}
}

// lastActive is the instant of the last Feed that got bytes.
func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }
