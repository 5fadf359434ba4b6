package commands

import (
	"log/slog"
	"sync"

	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// Options are what an Engine needs of the world around it. All but
// Process, Stop, ScriptRoom, FreeHeap and Log must be set.
type Options struct {
	// NewStore returns a view of the store for one lane.
	NewStore func() Store
	// Ledger counts values that have left the store while replies refer to them. Without
	// one replies are copies.
	Ledger shared.Ledger
	// Stopwatch is a monotonic reading, for measuring how long a command took. It
	// decides nothing.
	Stopwatch func() time.Duration
	// Now reads the store's clock, for the ages of clients.
	Now func() limit.Instant
	// Settings is the configuration that CONFIG shows and changes.
	Settings Settings
	// Process is what INFO says of the process; nil leaves those fields out.
	Process Process
	// ObserveExpiry has an observer told of what expires without anybody's doing; nil
	// tells nobody.
	ObserveExpiry func(Observer)
	// HoldExpiry keeps keys that have expired from being removed, or lets them go again;
	// nil if there is nothing to hold. Any goroutine may call it.
	HoldExpiry func(hold bool)
	// Persistence keeps effects; nil keeps nothing.
	Persistence Persistence
	// Stop ends the server; SHUTDOWN calls it.
	Stop func(StopMode)
	// Renamed are commands and the names they have instead, "" for none at all, as
	// rename-command has them: NewRenamedTable must have taken them.
	Renamed [][2]string
	// ScriptRoom says how many bytes of objects Go's heap may have while scripts run, and
	// how many of them are kept for keys; nil stands for any number.
	ScriptRoom func() (bound, kept int64)
	// FreeHeap gives what is garbage in Go's heap back to the system; nil does nothing.
	FreeHeap func()
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// Engine is everything above the sockets: it opens sessions and feeds them.
// It implements transport.Handler.
type Engine struct {
	Server
	totals
	workers
	background
	scriptEngine

	auth        authGuard
	clients     registry
	hub         hub
	invalidator invalidator

	alone   solitude
	pause   pause
	poppers struct {
		mu    sync.Mutex
		count int // guarded by mu: those who wait for elements
	}

	transactions sync.Pool // of *transaction, which are empty

}

// maxSlow is how many slow commands (KEYS, FLUSHALL, a long SCAN) run at once.
const maxSlow = 2

// NewEngine builds the command table and an engine around it.
func NewEngine(o Options) *Engine {
	table, err := NewRenamedTable(o.Renamed)
	if err != nil {
		panic(err)
	}
	e := &Engine{Server: Server{opts: o, table: table, log: o.Log}, background: background{slowSlots: make(chan struct{}, maxSlow)}}
	e.Server.Owner, e.host = e, e
	e.large.Room = func() int64 { return e.largeRoom() }
	e.besideSlots = make(chan struct{}, maxBeside())
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.clients.sessions, e.clients.byHost = make(map[int64]*Session), make(map[string]int)
	e.runs, e.alone.idle = lua.NewPool(e.scriptLimits()), sync.NewCond(&e.alone.mu)
	e.auth.tats = make(map[string]limit.Instant)
	e.invalidator.reads.init(func(id int64) bool { return e.clients.get(id) != nil })
	if o.ObserveExpiry != nil {
		o.ObserveExpiry(&observer{engine: e})
	}
	e.SetLimits(DefaultLimits())
	return e
}

// Table is the command table, from which documentation is generated.
func (e *Server) Table() *Table { return e.table }

// NewLane returns scratch for a feeding goroutine.
func (e *Engine) NewLane() transport.Lane { return e.newLane() }

// Open admits a connection or refuses it with a farewell.
func (e *Engine) Open(p transport.Peer) (transport.Session, []byte) {
	e.received.Add(1)
	if why := e.refuse(p); why != "" {
		e.refused.Add(1)
		w := resp.Writer{}
		w.Error(why)
		return nil, w.Buf
	}
	s := &Session{Client: Client{peer: p, created: e.opts.Now()}, engine: e}
	s.Owner, s.server = s, &e.Server
	s.setProtocol(2)
	if e.passwordSet() {
		s.lock(s.created)
	} else {
		s.unlock()
	}
	s.lastCmd.Store(-1)
	if !e.clients.add(s, e.Limits()) {
		e.refused.Add(1)
		w := resp.Writer{}
		w.Error(resp.ErrMaxClients)
		return nil, w.Buf
	}
	return s, nil
}

// SetLoading says that the state is not there yet, or that it is from now on.
// Meanwhile only commands are run that are flagged so.
func (e *Server) SetLoading(loading bool) {
	if loading {
		e.halts.Or(haltLoading)
	} else {
		e.halts.And(^haltLoading)
	}
}

// Loading reports whether the state is yet to come.
func (e *Server) Loading() bool { return e.halts.Load()&haltLoading != 0 }

// refuse says why a connection may not even try to authenticate, or "".
func (e *Server) refuse(p transport.Peer) resp.Error {
	l := e.Limits()
	if l.ProtectedMode && l.Password == "" && !isLocal(p.RemoteAddr()) {
		return errProtected
	}
	return ""
}

// Close waits for the slow commands that still run, which are told to give up. The
// transports must have been shut down.
func (e *Engine) Close() {
	e.ended.Store(true)
	e.large.End()
	e.slowMu.Lock()
	e.closed = true
	e.slowMu.Unlock()
	e.endPause(0) // stops its timer
	if e.EndScripts() {
		e.slowLane().Store.OpenGate() // nobody is left to look
	}
	e.slow.Wait()
	e.endAsides()
}

// slowLane lends a lane to a goroutine of Offload.
func (e *Engine) slowLane() *Lane {
	e.lanesMu.Lock()
	if n := len(e.idle); n > 0 {
		l := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.lanesMu.Unlock()
		return l
	}
	e.lanesMu.Unlock()
	return e.newLane()
}

func (e *workers) returnSlowLane(l *Lane) {
	e.lanesMu.Lock()
	e.idle = append(e.idle, l)
	e.lanesMu.Unlock()
}
