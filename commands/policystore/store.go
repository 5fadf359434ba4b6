// Package policystore has the records of policies in the database of the server: it is the store as
// the registry of policies uses it. It is beside the commands about policies, since a server without
// them has the policy file, too.
package policystore

import (
	"errors"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// Store returns st, which its caller has entered, as the registry of policies uses it. It is for who
// does not wait for changes of others: those who have entered the store keep all from stopping the
// world.
func Store(st env.Store) registry.Store { return store{Store: st} }

// Outside leaves st for as long as f runs, which may wait for changes of others, and gives f a store
// that is entered for each access.
func Outside(st env.Store, f func(st registry.Store)) {
	st.Leave()
	defer enter(st)
	f(store{Store: st, left: true})
}

// Gate says whether something may be written. It is asked in the store: the server may have become a
// replica, or be about to, since it was looked whether a command may run.
type Gate interface {
	// AfterPause keeps f for the end of a pause of changes, if there is one; f is told whether to go on.
	AfterPause(f func(goOn bool)) bool
	// Refused is why nothing may be written; nil if something may.
	Refused() error
}

// Gated returns st, which its caller has left, for somebody whom gate may refuse to write.
func Gated(st env.Store, gate Gate) registry.Store { return store{Store: st, left: true, gate: gate} }

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
	left bool // it has to be entered
	// gate is asked before something is written; nil is for always.
	gate Gate
}

// in runs f in the store.
func (s store) in(f func()) {
	if s.left {
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
func (s store) SetStrings(pairs [][]byte, urgent bool) (err error) {
	s.in(func() {
		if err = s.refused(); err == nil {
			err = s.set(pairs, urgent)
		}
	})
	return err
}

// refused waits for the end of a pause of changes, and returns why nothing may be changed.
func (s store) refused() error {
	if s.gate == nil {
		return nil
	}
	ended := make(chan bool, 1)
	for s.gate.AfterPause(func(goOn bool) { ended <- goOn }) {
		s.Leave()
		goOn := <-ended
		enter(s.Store)
		if !goOn {
			return errStops
		}
	}
	return s.gate.Refused()
}

const errStops resp.Error = "ERR the server stops"

// set sets strings. Only if memory is full does something urgent lock all its keys, for what has
// begun comes to its end. That of very many keys stops everybody meanwhile.
func (s store) set(pairs [][]byte, urgent bool) error {
	_, err := s.Store.SetStrings(registry.Database, pairs, false)
	if !urgent || !errors.Is(err, limit.ErrFull) {
		return err
	}
	refs := make([]env.KeyRef, len(pairs)/2)
	for i := range refs {
		refs[i] = env.KeyRef{DB: registry.Database, Key: pairs[2*i]}
	}
	s.Lock(refs, nil)
	defer s.Unlock()
	s.Begin()
	_, err = s.Store.SetStrings(registry.Database, pairs, false)
	return err
}

// Delete implements [registry.Store].
func (s store) Delete(key []byte) { s.in(func() { s.Store.Delete(registry.Database, key) }) }
