package session

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Session is the state of one connection. A field belongs to the goroutine that feeds the session,
// unless its comment or its type says that other goroutines may use it.
type Session struct {
	command.Client
	mailbox
	activity

	engine *Engine
	guard  resp.Guard

	wait atomic.Pointer[command.Wait] // the parked command; nil if there is none; only the feeding goroutine sets it

	pending *pendingReplies // the replies of the last Feed that wait for their effects; nil if there are none
	pump    transport.Pump  // the replication stream; nil for all clients except replicas
}

// activity is the state of a session that CLIENT LIST, [Engine.CloseOverdue] and
// [Engine.EvictClients] read.
type activity struct {
	active   atomic.Int64 // instant of the last batch with input, or of the last read of a link to a primary; 0 before
	partial  atomic.Int64 // instant at which the incomplete command began, 0 if no command is incomplete
	lastCmd  atomic.Int32 // number of the last command in the table; -1 before the first command
	overfull atomic.Bool  // the incomplete command is to be refused: see refuseOverfull
	lookedAt atomic.Int64 // the number of the last call of EvictClients that found mostly replies in the client's memory
	leaving  atomic.Int64 // the number of the first of the consecutive calls up to lookedAt that found mostly replies
	heldBack atomic.Bool  // whether the session waits because of its long input: see HoldLongInput
	queued   atomic.Int32 // the number of queued commands plus one, 0 outside of MULTI
	kept     atomic.Int64 // the last reported number of bytes of the queued commands, the watched keys and the parked command
}

// pendingReplies is a list of the replies of one session that wait until their effects are
// persisted.
type pendingReplies struct{ list []durableReply }

// Engine opens the sessions of connections and runs their commands. It implements
// [transport.Handler] and the parts of [command.Host].
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

// registry has all sessions that are listed as clients.
type registry struct {
	mu       sync.Mutex
	sessions map[int64]*Session // the sessions by the ID of the client; guarded by mu
	byHost   map[string]int     // the number of sessions by client address; guarded by mu
	last     int64              // the ID of the newest client; guarded by mu
}

// blocked reports whether a command of the client is parked for any reason except the decision of
// a Remote. Any goroutine may call it.
func (s *Session) blocked() bool {
	p := s.wait.Load()
	return p != nil && p.Render == nil
}

func sessionOf(x *command.Client) *Session { return x.Owner.(*Session) }

func engineOf(x *command.Server) *Engine { return x.Host.Calls.(*Engine) }
