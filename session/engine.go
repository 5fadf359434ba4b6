package session

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// totals counts clients and what became of them since the start.
type totals struct {
	rate        stats.Rate
	outbound    atomic.Int64 // bytes that wait in outboxes
	slowReaders atomic.Int64 // clients that were cut off for what they left unread
	kept        atomic.Int64 // bytes of transactions and watched keys
	evicted     atomic.Int64 // clients that were closed by maxmemory-clients
	looks       atomic.Int64 // calls of EvictClients
	taken       taken
	longInput   chan struct{} // see [Engine.LongInput]
	holding     atomic.Bool   // see [Engine.HoldLongInput]
	sinceDecay  time.Duration // touched by Tick only
	received    atomic.Int64  // connections since the start
	refused     atomic.Int64
	errors      stats.Errors
	callers     stats.Callers
	panics      atomic.Int64
	resets      atomic.Int64 // two for each: when it begins, and when it has ended
}

// taken is what has been taken from clients because of maxmemory-clients since the log last told it.
type taken struct {
	refused atomic.Int64 // commands
	bytes   atomic.Int64 // of these, and of closed clients
}

// background is the goroutines in the background.
type background struct {
	slowMu    sync.Mutex
	slow      sync.WaitGroup // goroutines of Spawn
	closed    bool           // guarded by slowMu
	slowSlots chan struct{}
	slots     chan struct{} // of Background
	fileSlots chan struct{} // of Background, for commands that read or write files of options
	urgent    chan struct{} // of Background, for commands that do not wait for those of slots
}

// executions are the commands that run by Execute.
type executions struct {
	executing       sync.WaitGroup
	executionsMu    sync.Mutex
	cancels         map[int64]context.CancelCauseFunc // guarded by executionsMu: of those that run
	lastExecution   int64                             // guarded by executionsMu
	executionsEnded bool                              // guarded by executionsMu: no more begin
}

// exclusiveQueue runs exclusive commands, one after another.
type exclusiveQueue struct {
	busy atomic.Bool // the one that runs has been running for long

	mu      sync.Mutex
	idle    *sync.Cond           // on mu: current has become nil
	queue   []*command.Exclusive // guarded by mu
	running bool                 // guarded by mu: a goroutine serves the queue
	current *command.Exclusive   // guarded by mu
	began   time.Duration        // guarded by mu: when current did, by the stopwatch
	closed  bool                 // guarded by mu: the server ends, nothing may run for long
	aborted bool                 // guarded by mu: a script was ended half way for that
}

// pause is CLIENT PAUSE while it lasts. What it is for is in the halts that every
// command looks at anyway, and whom it keeps waiting is in their sessions: a postponed
// command is parked, with its bytes left where they are, and is run from its first byte
// when the pause is over. A client that waits so costs no timer and no goroutine.
//
// Replies, errors and what is postponed are those of Redis 7.0: a command that is
// malformed or not allowed is refused at once, CLIENT UNPAUSE is postponed by ALL as
// everything is, and a second pause makes the first neither shorter nor less strict.
type pause struct {
	mu     sync.Mutex
	until  limit.Instant // guarded by mu: 0 without a pause
	stop   func() bool   // guarded by mu: stops the timer of its end
	behind []func(bool)  // guarded by mu: what goes on then beside sessions, see AfterPause
	// handover says that a primary hands over to a replica, which keeps a pause from ending.
	handover bool // guarded by mu

	// One goroutine at a time lets go on, however often pauses end.
	released  []func(bool) // guarded by mu: that were behind a pause that is over
	releasing bool         // guarded by mu: the goroutine is there
	more      bool         // guarded by mu: a pause has ended since it began to look
}

// NewEngine builds an engine for the commands of table.
func NewEngine(o env.Options, table *command.Table) *Engine {
	e := &Engine{Server: command.Server{Options: o, Commands: table, Users: acl.NewUsers(table), Log: o.Log}, background: background{slowSlots: make(chan struct{}, maxSlow)}}
	e.Host = e
	e.paces = pacesOf(table, e.Options.Remote != nil)
	if remote := e.Options.Remote; remote != nil {
		e.Options.Now, e.Options.Ledger = remote.Now, nil // nothing is lent
	}
	if (e.Options.Remote != nil) != table.Remote {
		panic("session: a table that asks a Remote goes with one, and no other does")
	}
	e.Large.Room = func() int64 { return e.LargeRoom() }
	e.slots, e.fileSlots = make(chan struct{}, maxBackground()), make(chan struct{}, maxFiles)
	e.urgent, e.longInput = make(chan struct{}, 1), make(chan struct{}, 1)
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	e.clients.sessions, e.clients.byHost = make(map[int64]*Session), make(map[string]int)
	e.exclusive.idle = sync.NewCond(&e.exclusive.mu)
	e.Figures = figure.New(table.Figures()...)
	figure.Provide(e.Figures, func(*figure.View) *command.Server { return &e.Server })
	figure.Provide(e.Figures, func(*figure.View) command.Statistics { return e.Statistics() })
	e.SetLimits(env.DefaultLimits())
	e.Equip()
	return e
}

// SetLimits puts new limits in force, for live clients too.
func (e *Engine) SetLimits(l env.Limits) {
	if e.Options.Remote != nil {
		l.Databases = 1
	}
	if before := e.ActiveLimits.Swap(&l); before == nil || before.Password != l.Password {
		e.Users.SetPassword(l.Password)
	}
	e.Users.SetAllChannels(l.AllChannels)
	e.Server.Refusals.SetMax(l.Refusals)
	e.LimitsChanged()
}

// KeepUsers has the next SetLimits leave the user default alone although the password is
// another one: whoever has replaced all users has taken it into account.
func (e *Engine) KeepUsers(password string) {
	l := *e.ActiveLimits.Load()
	l.Password = password
	e.ActiveLimits.Store(&l)
}

// Open admits a connection, or refuses it and returns a rejection to send.
func (e *Engine) Open(p transport.Peer) (transport.Session, []byte) {
	e.received.Add(1)
	if why := refuse(&e.Server, p); why != "" {
		e.refused.Add(1)
		w := resp.Writer{}
		w.Error(why)
		return nil, w.Buf
	}
	s := e.newSession(p, 2, e.Users.Default)
	if e.Users.NeedsLogin() {
		s.Lock(s.Created)
	}
	if !e.clients.add(s, e.Limits()) {
		e.refused.Add(1)
		w := resp.Writer{}
		w.Error(resp.ErrMaxClients)
		return nil, w.Buf
	}
	return s, nil
}

// newSession makes a session of u that nobody knows of yet.
func (e *Engine) newSession(p transport.Peer, proto int, u *acl.User) *Session {
	s := &Session{Client: command.Client{Peer: p, Created: e.Options.Now()}, engine: e}
	s.Owner, s.Server = s, &e.Server
	s.SetProtocol(proto)
	s.Login(u)
	s.lastCmd.Store(-1)
	return s
}

const errProtected resp.Error = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers, set a password with requirepass, or turn protected mode off."

// refuse says why a connection may not even try to authenticate, or "".
func refuse(e *command.Server, p transport.Peer) resp.Error {
	if e.Limits().ProtectedMode && e.Users.Default.Rules().Open() && !isLocal(p.RemoteAddr()) {
		return errProtected
	}
	return ""
}

// isLocal reports whether the peer is this machine: a unix socket or loopback. What
// it does not know is not.
func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}

// Close waits for the slow commands that still run, which are told to give up. The
// transports must have been shut down.
func (e *Engine) Close() {
	e.Ended.Store(true)
	e.Large.End()
	e.slowMu.Lock()
	e.closed = true
	e.slowMu.Unlock()
	e.endPause(0) // stops its timer
	if e.EndScripts() {
		e.takeWorker().Store.StartWorld() // nobody is left to look
	}
	e.slow.Wait()
	e.endCoroutines()
}
