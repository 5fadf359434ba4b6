package session

import (
	"log/slog"
	"sync"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Engine is everything above the sockets: it opens sessions and feeds them.
// It implements transport.Handler.
type Engine struct {
	command.Server
	totals
	workers
	background

	clients registry

	exclusive exclusiveQueue
	pause     pause
}

// maxSlow is how many slow commands (KEYS, FLUSHALL, a long SCAN) run at once.
const maxSlow = 2

// NewEngine builds an engine for the commands of table.
func NewEngine(o command.Options, table *command.Table) *Engine {
	e := &Engine{Server: command.Server{Opts: o, Commands: table, Log: o.Log}, background: background{slowSlots: make(chan struct{}, maxSlow)}}
	e.Host = e
	e.Large.Room = func() int64 { return e.LargeRoom() }
	e.besideSlots = make(chan struct{}, maxBeside())
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	e.clients.sessions, e.clients.byHost = make(map[int64]*Session), make(map[string]int)
	e.exclusive.idle = sync.NewCond(&e.exclusive.mu)
	e.SetLimits(command.DefaultLimits())
	e.Equip()
	return e
}

// NewLane returns scratch for a feeding goroutine.
func (e *Engine) NewLane() transport.Lane { return e.newLane() }

// Open admits a connection or refuses it with a farewell.
func (e *Engine) Open(p transport.Peer) (transport.Session, []byte) {
	e.received.Add(1)
	if why := refuse(&e.Server, p); why != "" {
		e.refused.Add(1)
		w := resp.Writer{}
		w.Error(why)
		return nil, w.Buf
	}
	s := &Session{Client: command.Client{Peer: p, Created: e.Opts.Now()}, engine: e}
	s.Session, s.Server = s, &e.Server
	s.SetProtocol(2)
	if e.PasswordSet() {
		s.Lock(s.Created)
	} else {
		s.Unlock()
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

// refuse says why a connection may not even try to authenticate, or "".
func refuse(e *command.Server, p transport.Peer) resp.Error {
	l := e.Limits()
	if l.ProtectedMode && l.Password == "" && !isLocal(p.RemoteAddr()) {
		return errProtected
	}
	return ""
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
		e.slowLane().Store.OpenGate() // nobody is left to look
	}
	e.slow.Wait()
	e.endCoroutines()
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
