package server

import (
	"time"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// store shows a view of the keyspace as commands want to see it. What the two
// spell alike passes through by embedding; the methods here translate the rest.
type store struct {
	*keyspace.View
	ks   *keyspace.Keyspace
	refs []keyspace.Ref // scratch of Hold
}

var _ commands.Store = (*store)(nil)

func newStore(ks *keyspace.Keyspace) *store { return &store{View: ks.NewView(), ks: ks} }

// WaitOpen implements commands.Store.
func (s *store) WaitOpen(wake func()) { s.ks.Gate().Wait(wake) }

// Hold implements commands.Store.
func (s *store) Hold(refs []commands.KeyRef) {
	s.refs = s.refs[:0]
	for _, r := range refs {
		s.refs = append(s.refs, keyspace.Ref(r))
	}
	s.View.Hold(s.refs)
}

// Civil implements commands.Store.
func (s *store) Civil(i limit.Instant) limit.Instant { return s.ks.Clock().Civil(i) }

// FromCivil implements commands.Store.
func (s *store) FromCivil(i limit.Instant) limit.Instant { return s.ks.Clock().Derived(i) }

// AfterFunc implements commands.Store.
func (s *store) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return s.ks.Clock().AfterFunc(d, f).Stop
}

// TypeName implements commands.Store.
func (s *store) TypeName(db int, key []byte) string { return s.Kind(db, key).Type() }

// Expire implements commands.Store.
func (s *store) Expire(db int, key []byte, at limit.Instant, cond commands.ExpireCondition) bool {
	var c keyspace.ExpireCond
	for _, pair := range []struct {
		ask commands.ExpireCondition
		set keyspace.ExpireCond
	}{
		{commands.ExpireIfNone, keyspace.ExpireNX},
		{commands.ExpireIfAny, keyspace.ExpireXX},
		{commands.ExpireIfLater, keyspace.ExpireGT},
		{commands.ExpireIfEarlier, keyspace.ExpireLT},
	} {
		if cond&pair.ask != 0 {
			c |= pair.set
		}
	}
	return s.View.Expire(db, key, at, c)
}

// Scan implements commands.Store.
func (s *store) Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) uint64 {
	return s.View.Scan(db, cursor, count, func(key []byte, k keyspace.Kind) { f(key, k.Type()) })
}
