package session

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// add gives s its id, unless there are too many sessions, of all or of its address.
func (r *registry) add(s *Session, l *env.Limits) bool {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= l.MaxClients {
		return false
	}
	if l.MaxPerAddress > 0 && r.byHost[from] >= l.MaxPerAddress && from != command.UnixHost {
		return false
	}
	r.enter(s)
	r.byHost[from]++
	return true
}

// enter gives s its id. r is locked.
func (r *registry) enter(s *Session) {
	r.last++
	s.ID = r.last
	r.sessions[s.ID] = s
}

func (r *registry) remove(s *Session) {
	from := command.HostOf(s.Peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.ID)
	if s.Primary {
		return // of no address
	}
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

// count returns how many sessions are open, without those of replicas, and how many of them a
// command keeps waiting.
func (r *registry) count() (open, blocked int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.Replica.Load() {
			continue // which Redis does not count either
		}
		open++
		if s.blocked() {
			blocked++
		}
	}
	return open, blocked
}

// list returns the sessions in the order they came.
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
