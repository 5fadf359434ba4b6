package keyspace

import (
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
)

// ExpireCond is an option of EXPIRE and its kin: a set of the flags below.
type ExpireCond uint8

const (
	// NX: only a key that never expires.
	NX ExpireCond = 1 << iota
	// XX: only a key that expires.
	XX
	// GT: only to a later instant, where never is the latest.
	GT
	// LT: only to an earlier instant.
	LT
)

// allows reports whether an expiry may change from old to at.
func (c ExpireCond) allows(old, at limit.Instant) bool {
	switch {
	case c&NX != 0 && old != entry.NoExpiry,
		c&XX != 0 && old == entry.NoExpiry,
		c&GT != 0 && at <= old,
		c&LT != 0 && at >= old:
		return false
	}
	return true
}

// Expiry returns the instant at which key expires; has is false for a key that
// never does.
func (v *View) Expiry(db int, key []byte) (at limit.Instant, has, exists bool) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	e := s.get(db, h, key)
	if e.Kind == entry.None {
		return 0, false, false
	}
	if e.Expiry == entry.NoExpiry {
		return 0, false, true
	}
	return e.Expiry, true, true
}

// Expire makes key expire at at, if it exists and cond allows, and reports whether
// it did. An instant that has passed deletes the key. What a limiter has stored
// does not change: it is forgotten earlier or kept longer, until the next call that
// consumes something sets the expiry that follows from its state again.
func (v *View) Expire(db int, key []byte, at limit.Instant, cond ExpireCond) bool {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	at = min(at, entry.NoExpiry-1)
	switch {
	case p.e.Kind == entry.None || !cond.allows(p.e.Expiry, at):
		return false
	case at <= s.last:
		s.remove(&p, key)
	default:
		s.setExpiry(&p, key, at)
	}
	return true
}

// Persist makes key live until it is deleted and reports whether it would have
// expired.
func (v *View) Persist(db int, key []byte) bool {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if p.e.Kind == entry.None || p.e.Expiry == entry.NoExpiry {
		return false
	}
	s.setExpiry(&p, key, entry.NoExpiry)
	return true
}
