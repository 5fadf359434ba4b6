package session

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
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	parked atomic.Pointer[command.Wait] // set by the feeding goroutine only

	owed *owedReplies // of the last Feed, nil without any
}

// lastActive is the instant of the last Feed that got bytes.
func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }
