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

// Backing is the part of the server's store that the records of the registry need.
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

// Outside leaves st, calls f, and enters st again. f may wait for other changes. It gets the store
// that [Left] returns.
func Outside(st Backing, server *command.Server, f func(st registry.Store)) {
	st.Leave()
	defer enter(st)
	f(Left(st, server))
}

// Left returns st as a store of the registry that enters st for each access. The caller has left
// st. A write waits for the end of a pause of changes. It is refused if the server may not change
// anything, for example because it is a replica. The store checks the role after it has entered st,
// because the server may have become a replica meanwhile.
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
	// server is nil if the caller has entered the store. Otherwise each access enters the store and
	// leaves it.
	server *command.Server
}

// in calls f while the store is entered.
func (s store) in(f func()) {
	if s.server != nil {
		enter(s.Backing)
		defer s.Leave()
	}
	f()
}

// Refresh implements [registry.Store]: it reads the clock and returns its instant.
func (s store) Refresh() (now limit.Instant, err error) {
	s.in(func() { now = s.Backing.Refresh() })
	return now, nil
}

// SetStrings implements [registry.Store]. pairs has keys and values alternately. need says what
// happens if memory is full. On an error nothing is changed.
func (s store) SetStrings(pairs [][]byte, need registry.Need) (err error) {
	s.in(func() {
		if err = s.refused(); err == nil {
			err = s.set(pairs, need)
		}
	})
	return err
}

// refused waits for the end of a pause of changes, and leaves the store meanwhile. Then it returns
// an error if the server may not change anything, or if it stops during the pause; otherwise nil.
// If the caller has entered the store, refused returns nil at once.
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

// set sets the keys in pairs, which has keys and values alternately. If memory is full and need is
// not Spare, set locks all the keys, so that the store permits more memory than maxmemory: see
// [env.Locker].Begin. With very many keys that blocks all other commands meanwhile.
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

// Removes implements [registry.Store]. It returns false: setting an empty value does not remove the
// key.
func (store) Removes() bool { return false }

// Delete implements [registry.Store]. A server that may not change anything keeps the keys, because its
// primary decides when to delete keys.
func (s store) Delete(keys ...[]byte) (err error) {
	s.in(func() {
		if err = s.refused(); err != nil {
			return
		}
		for _, key := range keys {
			s.Backing.Delete(registry.Database, key)
		}
	})
	return err
}
