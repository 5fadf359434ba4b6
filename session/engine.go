package session

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// totals counts clients and events, and has the state of the limits on the memory of clients.
// [Engine.ResetStatistics] sets rate, slowReaders, evicted, received, refused and errors to zero.
type totals struct {
	rate        stats.Rate
	outbound    atomic.Int64 // bytes in the outboxes of all clients
	slowReaders atomic.Int64 // number of clients that were disconnected because of their output buffer limit
	kept        atomic.Int64 // bytes of transactions, watched keys and parked commands
	evicted     atomic.Int64 // number of clients that were closed because of maxmemory-clients
	looks       atomic.Int64 // number of calls of EvictClients
	taken       taken
	longInput   chan struct{} // the channel that [Engine.LongInput] returns
	holding     atomic.Bool   // whether sessions with long input wait: see [Engine.HoldLongInput]
	sinceDecay  time.Duration // time since Tick last called the Decay hooks; used by Tick only
	received    atomic.Int64  // number of connections since the start or the last reset
	refused     atomic.Int64
	errors      stats.Errors
	callers     stats.Callers
	panics      atomic.Int64
	resets      atomic.Int64 // incremented at the beginning and at the end of each reset
}

// taken counts what was taken from clients because of maxmemory-clients since the last log
// message about it.
type taken struct {
	refused atomic.Int64 // number of refused commands
	bytes   atomic.Int64 // bytes of the refused commands and of the closed clients
}

// background has the state of goroutines that run in the background.
type background struct {
	slowMu    sync.Mutex
	slow      sync.WaitGroup // counts the goroutines of Spawn
	waits     running        // counts the work of SpawnWait
	closed    bool           // whether no more goroutines may begin; guarded by slowMu
	slowSlots chan struct{}  // has a slot for each command of Offload that may run at once
	slots     chan struct{}  // has a slot for each ordinary command of Background that may run at once
	fileSlots chan struct{}  // has a slot for each command of Background that may read or write files of options at once
	urgent    chan struct{}  // has a slot for each urgent command of Background that may run at once; these do not wait for slots
}

// executions has the commands that [Engine.Execute] is running.
type executions struct {
	executing       sync.WaitGroup
	executionsMu    sync.Mutex
	cancels         map[int64]context.CancelCauseFunc // the cancel functions of the running commands, by number; guarded by executionsMu
	lastExecution   int64                             // the number of the last command; guarded by executionsMu
	executionsEnded bool                              // no more commands may begin; guarded by executionsMu
}

// exclusiveQueue has the exclusive commands, which run one after another.
type exclusiveQueue struct {
	busy atomic.Bool // whether the current command has been running for longer than the limit Busy

	mu      sync.Mutex
	idle    *sync.Cond           // signals, with mu, that current has become nil
	queue   []*command.Exclusive // the commands that have not begun, in the order of their arrival; guarded by mu
	running bool                 // whether a goroutine serves the queue; guarded by mu
	current *command.Exclusive   // the running command, or nil; guarded by mu
	began   time.Duration        // the reading of the stopwatch when current began; guarded by mu
	closed  bool                 // the server stops, so no more commands may run; guarded by mu
	aborted bool                 // an exclusive command was aborted because the server stops; guarded by mu
}

// pause is the state of CLIENT PAUSE. The bits in [command.Server.Halts], which every command
// checks anyway, say which commands are delayed. The parked sessions are the list of waiting
// clients: a delayed command is parked with its input left in place, and runs from its first byte
// when the pause is over. So a waiting client needs no timer and no goroutine.
//
// Replies, errors and the choice of delayed commands are the same as in Redis 7.0: a malformed or
// forbidden command is refused at once, ALL delays even CLIENT UNPAUSE, and a second pause makes
// the first neither shorter nor less strict.
type pause struct {
	mu     sync.Mutex
	until  limit.Instant // the end of the pause; 0 if there is none; guarded by mu
	stop   func() bool   // stops the timer of the end; guarded by mu
	behind []func(bool)  // functions to call at the end: see AfterPause; guarded by mu
	// handover says that this primary is handing over to a replica. Commands that change
	// something are then delayed until the handover is over.
	handover bool // guarded by mu

	// These fields are for the goroutine that resumes the commands. There is only one, even if
	// pauses end repeatedly.
	released  []func(bool) // the functions of pauses that are over; guarded by mu
	releasing bool         // whether the goroutine is running; guarded by mu
	more      bool         // whether a pause has ended since the goroutine began its last pass; guarded by mu
}

// NewEngine returns an engine that runs the commands of table with the options o. It panics if o
// has a Remote and table is for a store, or the reverse.
func NewEngine(o env.Options, table *command.Table) *Engine {
	e := &Engine{Server: command.Server{Options: o, Commands: table, Users: acl.NewUsers(table), Log: o.Log}, background: background{slowSlots: make(chan struct{}, maxSlow)}}
	e.Host = command.Host{Waits: e, Work: e, Exclusives: e, Calls: e, Pauses: e, Registry: e, Messages: e, Measures: e}
	e.paces = pacesOf(table, e.Options.Remote != nil)
	if remote := e.Options.Remote; remote != nil {
		e.Options.Now, e.Options.Ledger = remote.Now, nil // with a Remote, replies share no values with the store
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

// SetLimits applies the limits l to the engine and to connected clients. A changed password becomes
// the password of the user "default". With a Remote there is always one database.
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

// KeepUsers records password as the current one, so that the next call of [Engine.SetLimits] with
// this password keeps the user "default" unchanged. The caller has replaced all users and has
// already applied the password.
func (e *Engine) KeepUsers(password string) {
	l := *e.ActiveLimits.Load()
	l.Password = password
	e.ActiveLimits.Store(&l)
}

// Open implements [transport.Handler]: it accepts the connection of p and returns its session. If
// the connection is refused, the session is nil, and the result is an error reply to send.
func (e *Engine) Open(p transport.Peer) (transport.Session, []byte) {
	return e.open(p, refuse(&e.Server, p), e.Users.NeedsLogin())
}

// Admit implements direct.Handler. It does what Open does, for a connection to another port. The client has to log in
// by the method Enter of its session, within no time limit. Enter also checks protected mode.
func (e *Engine) Admit(p transport.Peer) (transport.Session, []byte) { return e.open(p, "", false) }

// open counts the connection of p, and opens a session unless why refuses it or there are too many. If there are too many in total,
// clients that can do without their connections make room. lock says that the client has to authenticate in time.
func (e *Engine) open(p transport.Peer, why resp.Error, lock bool) (transport.Session, []byte) {
	e.received.Add(1)
	if why == "" {
		s := e.newSession(p, 2, e.Users.Default)
		if lock {
			s.Lock(s.Created)
		}
		for {
			added, full := e.clients.add(s, e.Limits())
			if added {
				return s, nil
			}
			if !full || !e.makeRoom() {
				break
			}
		}
		why = resp.ErrMaxClients
	}
	e.refused.Add(1)
	w := resp.Writer{}
	w.Error(why)
	return nil, w.Buf
}

// makeRoom closes a client that can do without its connection. It returns false if there is none.
func (e *Engine) makeRoom() bool { return e.Options.MakeRoom != nil && e.Options.MakeRoom() }

// newSession returns a session of user u with the RESP version proto. The session is not
// registered yet, so it has no id and is not in CLIENT LIST.
func (e *Engine) newSession(p transport.Peer, proto int, u *acl.User) *Session {
	s := &Session{Client: command.Client{Peer: p, Created: e.Options.Now()}, engine: e}
	s.Owner, s.Server = s, &e.Server
	s.SetProtocol(proto)
	s.Login(u)
	s.lastCmd.Store(-1)
	return s
}

const errProtected resp.Error = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers, set a password with requirepass, or turn protected mode off."

// refuse returns the error if the connection of p may not even authenticate, because of protected
// mode; "" if it may.
func refuse(e *command.Server, p transport.Peer) resp.Error {
	if e.Limits().ProtectedMode && e.Users.Default.Rules().Open() && !isLocal(p.RemoteAddr()) {
		return errProtected
	}
	return ""
}

func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}

// Close stops the engine: it makes slow commands that still run give up, aborts a running
// exclusive command, ends a pause, waits for all goroutines of [Engine.Spawn], and ends the
// coroutines. The transports must have been shut down.
func (e *Engine) Close() {
	e.Ended.Store(true)
	e.Large.End()
	e.slowMu.Lock()
	e.closed = true
	e.slowMu.Unlock()
	e.endPause(0) // endPause also stops the timer of the pause
	if e.EndScripts() {
		e.takeWorker().start() // no client can read the state any more
	}
	e.slow.Wait()
	e.endCoroutines()
}
