package keyspace

import (
	"bytes"

	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
)

// Kind returns what key holds; None if it does not exist.
func (v *View) Kind(db int, key []byte) entry.Kind {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return base(p.e.Kind)
}

// Exists reports whether key exists.
func (v *View) Exists(db int, key []byte) bool { return v.Kind(db, key) != entry.None }

// Delete removes key and reports whether it existed.
func (v *View) Delete(db int, key []byte) bool {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if p.e.Kind == entry.None {
		return false
	}
	s.remove(&p, key)
	return true
}

// Load returns a copy of what key holds.
func (v *View) Load(db int, key []byte) (entry.Entry, bool) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if isTree(p.e.Kind) {
		return s.whole(db, p.e, nil), true
	}
	p.e.Value = bytes.Clone(p.e.Value)
	return p.e, p.e.Kind != entry.None
}

// Put makes key hold value, which is copied, until expiry; an expiry that has
// passed deletes the key. The only error is limit.ErrFull, for a new key.
func (v *View) Put(db int, key []byte, k entry.Kind, value []byte, expiry limit.Instant) error {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if expiry <= s.last {
		if p.e.Kind != entry.None {
			s.remove(&p, key)
		}
		return nil
	}
	if p.e.Kind != entry.None && p.e.Kind != k {
		// Whoever waits for the limiter that was here has to look again.
		s.freed(db, key)
	}
	e := entry.Entry{Kind: k, Expiry: expiry, Value: value}
	if o := large(k, value); o != nil {
		return s.putTree(&p, key, e, o)
	}
	return s.put(&p, key, e)
}

// AppendString appends what GET replies to dst: the bytes of a string, a cell's TAT in
// decimal nanoseconds. Other kinds are limit.ErrWrongType. A value of [shared.Least]
// bytes or more is not appended but returned as it is stored, held by [shared.Hold]: it
// must not be changed, and is to be released as [shared.Held] with [Keyspace.Ledger].
func (v *View) AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return v.lend(dst, &p.e)
}
