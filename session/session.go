package session

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Session is what the server remembers of one connection. Fields without a note
// belong to the goroutine that feeds it; the others say who may touch them.
type Session struct {
	command.Client
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	wait atomic.Pointer[command.Wait] // set by the feeding goroutine only

	pending *pendingReplies // of the last Feed, nil without any
	pump    transport.Pump  // what a replica is sent beside replies; nil for all other clients
}

// activity is what CLIENT LIST and the janitor look at.
type activity struct {
	active   atomic.Int64 // instant of the last Feed that got bytes
	partial  atomic.Int64 // instant the unfinished command began, 0 if none
	lastCmd  atomic.Int32 // id of the last command, -1 before the first
	overfull atomic.Bool  // its unfinished command is to be refused: see refuseOverfull
	lookedAt atomic.Int64 // the call of EvictClients that last found that its replies take most
	leaving  atomic.Int64 // the first of those calls, one after another, that found it
	heldBack atomic.Bool  // its input waits until there is memory: see HoldLongInput
	queued   atomic.Int32 // one more than the commands that wait for EXEC, 0 outside of MULTI
	kept     atomic.Int64 // bytes that these and the watched keys take
}

// pendingReplies are the replies of one session that wait for their effects.
type pendingReplies struct{ list []durableReply }

// Engine is everything above the sockets: it opens sessions and feeds them.
// It implements transport.Handler.
type Engine struct {
	command.Server
	totals
	workers
	background
	executions

	clients registry

	exclusive exclusiveQueue
	pause     pause
}

// registry knows every open session.
type registry struct {
	mu       sync.Mutex
	sessions map[int64]*Session // guarded by mu
	byHost   map[string]int     // guarded by mu: how many sessions each address has
	last     int64              // guarded by mu: the newest id
}

// blocked reports whether a command keeps the client waiting. What a Remote is deciding
// does not. Any goroutine may call it.
func (s *Session) blocked() bool {
	p := s.wait.Load()
	return p != nil && p.Render == nil
}

// sessionOf returns the session that a command knows as x.
func sessionOf(x *command.Client) *Session { return x.Owner.(*Session) }

// engineOf returns the engine that a command knows as x.
func engineOf(x *command.Server) *Engine { return x.Host.(*Engine) }
