package policies

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/policy/registry"
)

// Store returns st as the registry of policies uses it.
func Store(st env.Store) registry.Store { return store{st} }

// store has the records of policies in the database of the server.
type store struct{ env.Store }

// SetStrings implements [registry.Store].
func (s store) SetStrings(pairs [][]byte, urgent bool) error {
	if urgent {
		refs := make([]env.KeyRef, len(pairs)/2)
		for i := range refs {
			refs[i] = env.KeyRef{DB: registry.Database, Key: pairs[2*i]}
		}
		s.Lock(refs, nil)
		defer s.Unlock()
		s.Begin()
	}
	_, err := s.Store.SetStrings(registry.Database, pairs, false)
	return err
}

// Delete implements [registry.Store].
func (s store) Delete(key []byte) { s.Store.Delete(registry.Database, key) }
