package keyspace

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/object"
)

// Encoding returns the reply to OBJECT ENCODING for key: for a string or collection the encoding
// that Redis would use, for a limiter its mode. The second result is false if key does not exist.
func (v *Handle) Encoding(db int, key []byte) (string, bool) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	e := s.get(db, h, key)
	switch e.Kind {
	case entry.None:
		return "", false
	case entry.String:
		return entry.StringEncoding(e.Value), true
	}
	if base(e.Kind).IsCollection() {
		return object.Encoding(v.object(s, db, &e)), true
	}
	return e.Kind.Encoding(), true
}

// Describe calls f for each field that RL.INFO shows of key. The value of a field is text if isText
// is true, otherwise number. The first result reports whether the key exists. by supplies what the
// stored state lacks: see [decide.Tell], whose error Describe returns. f is called with a shard
// locked and must not use the keyspace.
func (v *Handle) Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (bool, error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if p.e.Kind == entry.None {
		return false, nil
	}
	e := p.e
	e.Kind = base(e.Kind)
	if err := decide.Tell(&e, s.last, by, f); err != nil {
		return true, err
	}
	if e.Kind.IsCollection() {
		o := v.object(s, db, &p.e)
		f("mode", object.Encoding(o), 0, true)
		f("length", "", int64(o.Len()), false)
	}
	at := int64(-1)
	if e.Expiry != entry.NoExpiry {
		at = int64(v.ks.clock.Civil(e.Expiry)) / 1e6
	}
	f("expire-at", "", at, false)
	f("bytes", "", s.costAt(db, p.r), false)
	return true, nil
}
