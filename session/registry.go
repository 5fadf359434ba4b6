package session

import (
	"net"
	"slices"
	"sync"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
)

// registry knows every open session.
type registry struct {
	mu       sync.Mutex
	sessions map[int64]*Session // guarded by mu
	byHost   map[string]int     // guarded by mu: how many sessions each address has
	last     int64              // guarded by mu: the newest id
}

// add gives s its id, unless there are too many sessions, of all or of its address.
func (r *registry) add(s *Session, l *command.Limits) bool {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= l.MaxClients {
		return false
	}
	if l.MaxPerAddress > 0 && r.byHost[from] >= l.MaxPerAddress && from != command.UnixHost {
		return false
	}
	r.last++
	s.Id = r.last
	r.sessions[s.Id] = s
	r.byHost[from]++
	return true
}

func (r *registry) remove(s *Session) {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.Id)
	if r.byHost[from]--; r.byHost[from] <= 0 {
		delete(r.byHost, from)
	}
}

// get returns the session of that id, or nil.
func (r *registry) get(id int64) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// count returns how many sessions are open, and how many of them are parked.
func (r *registry) count() (open, parked int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.parked.Load() != nil {
			parked++
		}
	}
	return int64(len(r.sessions)), parked
}

// list returns the sessions in the order they came.
func (r *registry) list() []*Session {
	r.mu.Lock()
	all := make([]*Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		all = append(all, s)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *Session) int { return int(a.Id - b.Id) })
	return all
}

// Police closes the clients that have outstayed a limit: idle, too long over one
// command, or too long without authenticating. The server calls it once a second,
// which is cheaper than a deadline for every read.
func (e *Engine) Police(now limit.Instant) {
	l := e.Limits()
	for _, s := range e.clients.list() {
		locked, partial := limit.Instant(s.Locked.Load()), limit.Instant(s.partial.Load())
		idle := now.Sub(max(s.Created, s.lastActive()))
		switch {
		case l.Password != "" && locked != 0 && now.Sub(locked) >= l.PreAuth && !s.postponed(),
			partial != 0 && now.Sub(partial) >= l.Partial,
			l.Idle > 0 && idle >= l.Idle && s.parked.Load() == nil && !s.Subscribed():
			s.Peer.Abort()
		case s.outstays(now):
			s.cutOff()
		}
	}
}

// subscribers returns how many sessions have subscribed to something.
func (r *registry) subscribers() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.Subscribed() {
			n++
		}
	}
	return n
}

// Beside is how many bytes sessions take: subscriptions, messages that wait for clients,
// what transactions and WATCH keep, and what is known of who has read what.
func (e *Engine) Beside() int64 {
	return e.outbound.Load() + e.kept.Load() + e.Memory() + e.Large.Size()
}

// Client implements [command.Host].
func (e *Engine) Client(id int64) *command.Client {
	if s := e.clients.get(id); s != nil {
		return &s.Client
	}
	return nil
}

// Clients implements [command.Host].
func (e *Engine) Clients() []*command.Client {
	sessions := e.clients.list()
	all := make([]*command.Client, len(sessions))
	for i, s := range sessions {
		all[i] = &s.Client
	}
	return all
}

// CountClients implements [command.Host].
func (e *Engine) CountClients() (all, blocked int64) { return e.clients.count() }

// Activity implements [command.Host].
func (e *Engine) Activity(cl *command.Client) command.Activity {
	s := sessionOf(cl)
	a := command.Activity{Active: s.lastActive(), Blocked: s.parked.Load() != nil, Queued: int(s.queued.Load()) - 1, Memory: s.memory()}
	if id := s.lastCmd.Load(); id >= 0 {
		a.LastCommand = e.Commands.Entries[id]
	}
	return a
}

// NoteCommand implements [command.Host].
func (e *Engine) NoteCommand(cl *command.Client, cmd *command.Command) {
	sessionOf(cl).noteCommand(cmd)
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
