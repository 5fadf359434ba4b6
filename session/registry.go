package session

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// add registers s and sets its id. It returns false if there are too many sessions, from the address of s or
// in total; full says that it is in total. Unix sockets have no limit for their address.
func (r *registry) add(s *Session, l *env.Limits) (added, full bool) {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.MaxPerAddress > 0 && r.byHost[from] >= l.MaxPerAddress && from != command.UnixHost {
		return false, false
	}
	if len(r.sessions) >= l.MaxClients {
		return false, true
	}
	r.enter(s)
	r.byHost[from]++
	return true, false
}

// enter registers s and sets its id. It does not change r.byHost. The caller has locked r.
func (r *registry) enter(s *Session) {
	r.last++
	s.ID = r.last
	r.sessions[s.ID] = s
}

// remove removes s from the registry and from the count of its address. The session of a link to a
// primary has no such count.
func (r *registry) remove(s *Session) {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.ID)
	if s.Primary {
		return // the session of a link to a primary was not counted for an address
	}
	if r.byHost[from]--; r.byHost[from] <= 0 {
		delete(r.byHost, from)
	}
}

func (r *registry) get(id int64) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// count returns the number of open sessions, except the sessions of replicas, as in Redis, and the
// number of these sessions that are blocked in a command.
func (r *registry) count() (open, blocked int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.Replica.Load() {
			continue // Redis does not count replicas either
		}
		open++
		if s.blocked() {
			blocked++
		}
	}
	return open, blocked
}

// list returns the open sessions in the order of their arrival, including the sessions of replicas
// and of links to primaries.
func (r *registry) list() []*Session {
	r.mu.Lock()
	all := make([]*Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		all = append(all, s)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *Session) int { return int(a.ID - b.ID) })
	return all
}

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

// Client implements [command.Registry]: it returns the connected client with that id, or nil.
func (e *Engine) Client(id int64) *command.Client {
	if s := e.clients.get(id); s != nil {
		return &s.Client
	}
	return nil
}

// Clients implements [command.Registry]: it returns the connected clients in the order of their
// arrival.
func (e *Engine) Clients() []*command.Client {
	sessions := e.clients.list()
	all := make([]*command.Client, len(sessions))
	for i, s := range sessions {
		all[i] = &s.Client
	}
	return all
}

// CountClients implements [command.Registry]: it returns the number of clients except replicas, and
// the number of them that are blocked in a command.
func (e *Engine) CountClients() (all, blocked int64) { return e.clients.count() }
