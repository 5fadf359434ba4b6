package local

import (
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace"
)

// SetString implements [env.Local].
func (s *store) SetString(db int, key, value []byte, o env.SetOptions) (bool, error) {
	return s.Handle.SetString(db, key, value, keyspace.SetOptions(o))
}

// SwapString implements [env.Local].
func (s *store) SwapString(dst []byte, db int, key, value []byte, o env.SetOptions) (old []byte, found, done bool, err error) {
	return s.Handle.SwapString(dst, db, key, value, keyspace.SetOptions(o))
}
