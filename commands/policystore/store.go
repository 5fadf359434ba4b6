// Package policystore has the records of policies in the database of the server: it is the store as
// the registry of policies uses it. It is beside the commands about policies, since a server without
// them has the policy file, too.
package policystore

import (
	"errors"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// Store returns st, which its caller has entered, as the registry of policies uses it. Use it only in
// code that never waits for another change: a goroutine that has entered the store keeps all others
// from stopping the world.
func Store(st env.Store) registry.Store { return store{Store: st} }

// Outside leaves st for as long as f runs, which may wait for changes of others, and gives f a store
// that is entered for each access: see [Left].
func Outside(st env.Store, server *command.Server, f func(st registry.Store)) {
	st.Leave()
	defer enter(st)
	f(Left(st, server))
}

// Left returns st, which its caller has left, as one that is entered for each access. What is to be
// written waits for the end of a pause of changes, and is refused where the server may not change
// anything any more: that is looked at in the store, for it may have become a replica since.
func Left(st env.Store, server *command.Server) registry.Store {
	return store{Store: st, server: server}
}

// enter enters the store once nobody has stopped the world.
func enter(st env.Store) {
	for !st.Enter() {
		open := make(chan struct{})
		st.NotifyStart(func() { close(open) })
		<-open
	}
	st.Refresh()
}

// store has the records of policies in the database of the server.
type store struct {
	env.Store
	// server is that of a store which has to be entered; nil if it has been.
	server *command.Server
}

// in runs f in the store.
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

// refused waits for the end of a pause of changes, and returns why nothing may be changed.
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

// set sets strings. Only if memory is full does a change that may go on lock all its keys, for what
// has begun comes to its end. That of very many keys stops everybody meanwhile.
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

// Delete implements [registry.Store]. A server that may not change anything keeps the key: its
// primary says what becomes of it.
func (s store) Delete(key []byte) {
	s.in(func() {
		if s.refused() == nil {
			s.Store.Delete(registry.Database, key)
		}
	})
}
