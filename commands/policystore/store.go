// Package policystore adapts the database of the server to the registry of policies, which keeps
// its records there. It is not part of the commands about policies, because a server without
// these commands can have a policy file, too.
package policystore

import (
	"errors"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// Store returns st as a store of the registry. The caller has entered st. Use it only in code
// that never waits for another change: a goroutine that has entered the store prevents all others
// from stopping the world.
func Store(st env.Store) registry.Store { return store{Store: st} }

// Outside leaves st while f runs, which may wait for other changes, and gives f a store that is
// entered for each access: see [Left].
func Outside(st env.Store, server *command.Server, f func(st registry.Store)) {
	st.Leave()
	defer enter(st)
	f(Left(st, server))
}

// Left returns st, which the caller has left, as a store of the registry that is entered for each
// access. A write waits for the end of a pause of changes. It is refused if the server may not
// change anything, which is checked inside the store, because the server may have become a
// replica meanwhile.
func Left(st env.Store, server *command.Server) registry.Store {
	return store{Store: st, server: server}
}

// enter enters the store, and waits while another goroutine has stopped the world.
func enter(st env.Store) {
	for !st.Enter() {
		open := make(chan struct{})
		st.NotifyStart(func() { close(open) })
		<-open
	}
	st.Refresh()
}

// store implements [registry.Store] with the database of the server.
type store struct {
	env.Store
	// server is set if the store has to be entered for each access, and nil if the caller has
	// entered it.
	server *command.Server
}

// in runs f inside the store.
func (s store) in(f func()) {
	if s.server != nil {
		enter(s.Store)
		defer s.Leave()
	}
	f()
}

// Refresh implements [registry.Store].
func (s store) Refresh() (now limit.Instant) {
	s.in(func() { now = s.Store.Refresh() })
	return now
}

// SetStrings implements [registry.Store].
func (s store) SetStrings(pairs [][]byte, need registry.Need) (err error) {
	s.in(func() {
		if err = s.refused(); err == nil {
			err = s.set(pairs, need)
		}
	})
	return err
}

// refused waits for the end of a pause of changes. It returns an error if the server may not
// change anything.
func (s store) refused() error {
	if s.server == nil {
		return nil
	}
	ended := make(chan bool, 1)
	for s.server.Host.AfterPause(func(goOn bool) { ended <- goOn }) {
		s.Leave()
		goOn := <-ended
		enter(s.Store)
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

// set sets strings. If memory is full and need is not Spare, it locks all the keys and uses the
// memory that is reserved for calls which have begun. Very many keys block all other commands
// meanwhile.
func (s store) set(pairs [][]byte, need registry.Need) error {
	_, err := s.Store.SetStrings(registry.Database, pairs, false)
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
	_, err = s.Store.SetStrings(registry.Database, pairs, false)
	return err
}

// Delete implements [registry.Store]. A server that may not change anything keeps the key,
// because its primary decides about it.
func (s store) Delete(key []byte) {
	s.in(func() {
		if s.refused() == nil {
			s.Store.Delete(registry.Database, key)
		}
	})
}
