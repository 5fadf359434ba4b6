package session

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Session is the state of one connection. Fields without a note belong to the goroutine that feeds
// the session; notes of the others say which goroutines may use them.
type Session struct {
	command.Client
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	wait atomic.Pointer[command.Wait] // set by the feeding goroutine only

	pending *pendingReplies // the replies of the last Feed that wait; nil if there are none
	pump    transport.Pump  // the replication stream; nil for all clients except replicas
}

// activity is the state that CLIENT LIST and the janitor read.
type activity struct {
	active   atomic.Int64 // instant of the last Feed that received bytes
	partial  atomic.Int64 // instant at which the incomplete command began, 0 if there is none
	lastCmd  atomic.Int32 // id of the last command, -1 before the first
	overfull atomic.Bool  // its incomplete command is to be refused: see refuseOverfull
	lookedAt atomic.Int64 // the number of the last call of EvictClients that found its memory to be mostly replies
	leaving  atomic.Int64 // the number of the first of these consecutive calls
	heldBack atomic.Bool  // its input waits for memory: see HoldLongInput
	queued   atomic.Int32 // the number of queued commands plus one, 0 outside of MULTI
	kept     atomic.Int64 // bytes of the queued commands and the watched keys
}

// pendingReplies is a list of the replies of one session that wait for their effects.
type pendingReplies struct{ list []durableReply }

// Engine is everything above the sockets: it opens sessions and runs their commands. It implements
// [transport.Handler].
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

// registry has all open sessions.
type registry struct {
	mu       sync.Mutex
	sessions map[int64]*Session // guarded by mu
	byHost   map[string]int     // guarded by mu: the number of sessions of each address
	last     int64              // guarded by mu: the last id
}

// blocked reports whether the client is blocked in a command. A wait for the decision of a Remote
// does not count. Any goroutine may call it.
func (s *Session) blocked() bool {
	p := s.wait.Load()
	return p != nil && p.Render == nil
}

// sessionOf returns the session of a client.
func sessionOf(x *command.Client) *Session { return x.Owner.(*Session) }

// engineOf returns the engine of a server.
func engineOf(x *command.Server) *Engine { return x.Host.(*Engine) }
