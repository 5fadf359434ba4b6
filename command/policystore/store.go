// Package policystore adapts the store of the server to the registry of policies, which keeps its
// records there. It is not part of package policies, because a server without the commands about
// policies can have a policy file, too.
package policystore

import (
	"errors"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// Backing is what the records of the registry need of the server's store.
type Backing interface {
	env.Store
	env.World
	env.Locker
	env.Keys
	env.Strings
}

// Store returns st as a store of the registry. The caller has entered st. Use it only in code that
// never waits for another change, because the caller prevents all other goroutines from stopping
// the world.
func Store(st Backing) registry.Store { return store{Backing: st} }

// Outside leaves st, calls f, and enters st again. f may wait for other changes. It gets a store
// that enters st for each access: see [Left].
func Outside(st Backing, server *command.Server, f func(st registry.Store)) {
	st.Leave()
	defer enter(st)
	f(Left(st, server))
}

// Left returns st, which the caller has left, as a store of the registry that enters st for each
// access. A write waits for the end of a pause of changes. It is refused if the server may not
// change anything; that is checked inside the store, because the server may have become a replica
// meanwhile.
func Left(st Backing, server *command.Server) registry.Store {
	return store{Backing: st, server: server}
}

// enter enters st and refreshes its instant. It waits while another goroutine has stopped the
// world.
func enter(st Backing) {
	for !st.Enter() {
		open := make(chan struct{})
		st.NotifyStart(func() { close(open) })
		<-open
	}
	st.Refresh()
}

// store implements [registry.Store] with the store of the server.
type store struct {
	Backing
	// server is nil if the caller has entered the store. Otherwise the store is entered for each
	// access.
	server *command.Server
}

// in calls f inside the store.
func (s store) in(f func()) {
	if s.server != nil {
		enter(s.Backing)
		defer s.Leave()
	}
	f()
}

// Refresh implements [registry.Store]: it reads the clock and returns its instant.
func (s store) Refresh() (now limit.Instant) {
	s.in(func() { now = s.Backing.Refresh() })
	return now
}

// SetStrings implements [registry.Store]: it sets the keys in pairs, or returns an error and
// changes nothing. need says what happens if memory is full.
func (s store) SetStrings(pairs [][]byte, need registry.Need) (err error) {
	s.in(func() {
		if err = s.refused(); err == nil {
			err = s.set(pairs, need)
		}
	})
	return err
}

// refused waits for the end of a pause of changes. Then it returns an error if the server may not
// change anything or is stopping, and nil otherwise. It may leave the store meanwhile.
func (s store) refused() error {
	if s.server == nil {
		return nil
	}
	ended := make(chan bool, 1)
	for s.server.Host.Pauses.AfterPause(func(goOn bool) { ended <- goOn }) {
		s.Leave()
		goOn := <-ended
		enter(s.Backing)
		if !goOn {
			return errStops
		}
	}
	if err := s.server.ChangesRefused(); err != "" {
		return err
	}
	return nil
}

const errStops resp.Error = "ERR the server stops"

// set sets the keys in pairs. If memory is full and need is not Spare, set locks all these keys and
// uses the memory that is reserved for commands which have begun. For very many keys that blocks
// all other commands meanwhile.
func (s store) set(pairs [][]byte, need registry.Need) error {
	_, err := s.Backing.SetStrings(registry.Database, pairs, false)
	if need == registry.Spare || !errors.Is(err, limit.ErrFull) {
		return err
	}
	refs := make([]env.KeyRef, len(pairs)/2)
	for i := range refs {
		refs[i] = env.KeyRef{DB: registry.Database, Key: pairs[2*i]}
	}
	s.Lock(refs, nil)
	defer s.Unlock()
	if need == registry.Frees {
		s.BeginFreeing()
	} else {
		s.Begin()
	}
	_, err = s.Backing.SetStrings(registry.Database, pairs, false)
	return err
}

// Delete implements [registry.Store]: it deletes key. A server that may not change anything keeps
// the key, because its primary decides about it.
func (s store) Delete(key []byte) {
	s.in(func() {
		if s.refused() == nil {
			s.Backing.Delete(registry.Database, key)
		}
	})
}
