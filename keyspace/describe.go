package keyspace

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Encoding is what OBJECT ENCODING replies: a string's as Redis would store it, a
// limiter's mode.
func (v *View) Encoding(db int, key []byte) (string, bool) {
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

// describer is whom Describe tells the fields of a key.
type describer func(field, text string, number int64, isText bool)

func (f describer) text(field, t string) { f(field, t, 0, true) }

func (f describer) number(field string, n int64) { f(field, "", n, false) }

// Describe calls f with what RL.INFO shows of key, field by field, as a text or as
// a number, and reports whether the key exists.
//
// Most limiters get their limits with every call and store none. by supplies what is
// missing: it is nil, or a *[gcra.Quota], *[slidingwindow.Call], *[tokenbucket.Call] or
// *[concurrency.Call], of which the limit or capacity counts. One of another family than
// the key's is [limit.ErrWrongType].
func (v *View) Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (bool, error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	e, tell := p.e, describer(f)
	if e.Kind == entry.None {
		return false, nil
	}
	r, err := roomOf(&e, s.last, by)
	if err != nil {
		return true, err
	}
	tell.text("type", base(e.Kind).Type())
	switch base(e.Kind) {
	case entry.String:
		tell.text("mode", entry.StringEncoding(e.Value))
		tell.number("length", int64(len(e.Value)))
	case entry.Cell:
		tat := entry.CellTAT(&e)
		tell.text("mode", "gcra")
		tell.number("tat-ns", int64(tat))
		tell.number("debt-ns", int64(max(0, tat.Sub(s.last))))
		tell.number("reset-ms", limit.MillisUp(max(0, tat.Sub(s.last))))
	case entry.Hash, entry.SortedSet, entry.List, entry.Set:
		o := v.object(s, db, &e)
		tell.text("mode", object.Encoding(o))
		tell.number("length", int64(o.Len()))
	default:
		tell.text("mode", e.Kind.Encoding())
		describeLimiter(&e, s.last, tell.number)
	}
	r.tell(tell)
	at := int64(-1)
	if e.Expiry != entry.NoExpiry {
		at = int64(v.ks.clock.Civil(e.Expiry)) / 1e6
	}
	tell.number("expire-at", at)
	tell.number("bytes", s.costAt(db, p.r))
	return true, nil
}

func describeLimiter(e *entry.Entry, now limit.Instant, emit func(field string, n int64)) {
	switch {
	case e.Kind.IsWindow():
		slidingwindow.Describe(e.Kind.WindowMode(), e.Value, now, emit)
	case e.Kind.IsLease():
		concurrency.Describe(e.Kind.LeaseMode(), e.Value, now, emit)
	case e.Kind.IsBucket():
		tokenbucket.Describe(e.Kind.BucketMode(), e.Value, now, emit)
	}
}
