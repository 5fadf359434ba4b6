package keyspace

import (
	"strconv"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// The methods of this file treat keys of kind [entry.String] and of kind [entry.Cell] as strings. A
// cell reads as its TAT in decimal nanoseconds, and becomes a plain string when one of the methods
// changes it. For keys of other kinds the methods return limit.ErrWrongType, except for EachString
// and for those that overwrite the key.

// SetOptions has the options of [Handle.SetString].
type SetOptions struct {
	// Expiry is the instant at which the key expires, [entry.NoExpiry] for never. An instant that
	// has passed deletes the key.
	Expiry limit.Instant
	// KeepTTL keeps the expiry of a key that exists; Expiry is then ignored, and a new key has no
	// expiry.
	KeepTTL bool
	// If IfExists is true, nothing is stored unless the key exists. If IfAbsent is true, nothing is
	// stored if the key exists.
	IfExists, IfAbsent bool
}

// SetString stores a copy of value at key, whatever the key held, or deletes the key if o.Expiry
// has passed. done is false if o.IfExists or o.IfAbsent forbids the change. The errors are
// limit.ErrFull and limit.ErrNotKept; with an error nothing is changed.
func (v *Handle) SetString(db int, key, value []byte, o SetOptions) (done bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return v.setString(s, &p, key, value, o)
}

// SwapString does what [Handle.SetString] does, and returns the old value as [Handle.AppendString]
// does: old is appended to dst, and found reports whether the key existed. If the key holds
// something other than a string, the error is limit.ErrWrongType and nothing is changed.
func (v *Handle) SwapString(dst []byte, db int, key, value []byte, o SetOptions) (old []byte, found, done bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if old, found, err = v.reference(dst, &p.e); err != nil {
		return dst, found, false, err
	}
	if done, err = v.setString(s, &p, key, value, o); err != nil {
		v.takeBack(old)
		return dst, found, false, err
	}
	return old, found, done, nil
}

// setString does what SetString does for key, whose place is p and whose shard s is locked.
func (v *Handle) setString(s *shard, p *place, key, value []byte, o SetOptions) (done bool, err error) {
	exists := p.e.Kind != entry.None
	if exists && o.IfAbsent || !exists && o.IfExists {
		return false, nil
	}
	expiry := o.Expiry
	if o.KeepTTL {
		expiry = entry.NoExpiry
		if exists {
			expiry = p.e.Expiry
		}
	}
	return true, v.putString(s, p, key, entry.Entry{Value: value, Expiry: expiry})
}

// putString stores e as a string at key, whose place is p; e.Kind need not be set. If the expiry of
// e has passed, putString removes the key. The errors are limit.ErrNotKept and limit.ErrFull.
func (v *Handle) putString(s *shard, p *place, key []byte, e entry.Entry) error {
	if v.refuses() {
		return limit.ErrNotKept
	}
	if e.Expiry <= s.last {
		if p.e.Kind != entry.None {
			s.remove(p, key)
		}
		return nil
	}
	if v.full() && grows(p, e.Value) {
		return limit.ErrFull
	}
	if k := p.e.Kind; k != entry.None && k != entry.String {
		// The first waiter for the former limiter at this key has to decide again.
		s.freed(p.db, key)
	}
	e.Kind = entry.String
	return s.put(p, key, e)
}

// grows reports whether value takes more memory than the entry at p. A value as short as a number
// never counts as growth of an existing key, because counters must work when memory is full, as
// limiters do.
func grows(p *place, value []byte) bool {
	return p.old == entry.None || len(value) > max(len(p.e.Value), entry.MaxNumber) || busy(p.old, p.e.Value)
}

// busy reports whether replies refer to value, the value of an entry of kind k. Then a replacement
// takes memory in addition to the value.
func busy(k entry.Kind, value []byte) bool {
	return k == entry.String && len(value) >= shared.Least && shared.Busy(value)
}

// reference returns the string or cell e for a reply, appended to dst. found is false if e is of
// kind None. A long string is not copied: value is then the stored memory itself, held by
// [shared.Hold] with [Keyspace.Ledger], and the caller has to release it. The error is
// limit.ErrWrongType for other kinds.
func (v *Handle) reference(dst []byte, e *entry.Entry) (value []byte, found bool, err error) {
	if e.Kind == entry.String && len(e.Value) >= shared.Least {
		shared.Hold(e.Value, &v.ks.mem.Memory)
		return e.Value, true, nil
	}
	return appendString(dst, e)
}

// takeBack releases a value that reference has returned, if it is held, because no reply will
// contain it.
func (v *Handle) takeBack(value []byte) {
	if len(value) >= shared.Least {
		lent := shared.Held(value, &v.ks.mem.Memory)
		lent.Release()
	}
}

// appendString appends to dst the text of the string or cell e. found is false if e is of kind
// None. The error is limit.ErrWrongType for other kinds.
func appendString(dst []byte, e *entry.Entry) (value []byte, found bool, err error) {
	switch e.Kind.Plain() {
	case entry.None:
		return dst, false, nil
	case entry.String:
		return append(dst, e.Value...), true, nil
	case entry.Cell:
		return gcra.AppendDecimal(dst, entry.CellTAT(e)), true, nil
	}
	return dst, true, limit.ErrWrongType
}

// expiryOrNever returns the expiry of the key at p, or [entry.NoExpiry] if the key does not exist.
func (p *place) expiryOrNever() limit.Instant {
	if p.e.Kind == entry.None {
		return entry.NoExpiry
	}
	return p.e.Expiry
}

// AddInt adds by to the integer at key, or to 0 if the key does not exist, stores the sum and
// returns it. An existing key keeps its expiry, and a new key has none. The errors are
// limit.ErrWrongType, limit.ErrNotInteger, limit.ErrSumOverflow, limit.ErrFull and
// limit.ErrNotKept; with an error nothing is changed.
func (v *Handle) AddInt(db int, key []byte, by int64) (sum int64, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	was, err := storedInt(&p.e)
	if err != nil {
		return 0, err
	}
	sum, ok := addInt(was, by)
	if !ok {
		return 0, limit.ErrSumOverflow
	}
	v.scratch = strconv.AppendInt(v.scratch[:0], sum, 10)
	return sum, v.putString(s, &p, key, entry.Entry{Value: v.scratch, Expiry: p.expiryOrNever()})
}

// addInt returns a + b and whether the sum fits into 64 bits.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// storedInt returns the integer that the string or cell e holds, or 0 if e is of kind None. As in
// Redis, the text must be in the form that Redis itself writes, without a plus sign or leading
// zeros. Otherwise the error is limit.ErrNotInteger, or limit.ErrWrongType for other kinds.
func storedInt(e *entry.Entry) (int64, error) {
	switch e.Kind.Plain() {
	case entry.None:
		return 0, nil
	case entry.Cell:
		return int64(entry.CellTAT(e)), nil
	case entry.String:
		if n, ok := counter.ParseInt(e.Value); ok {
			return n, nil
		}
		return 0, limit.ErrNotInteger
	}
	return 0, limit.ErrWrongType
}

// ExtendString appends more to the string at key, or stores a copy of more if the key does not
// exist, and returns the new length in bytes. The key keeps its expiry. If an existing string would
// become longer than most bytes, the error is limit.ErrTooLong. The other errors are
// limit.ErrWrongType, limit.ErrFull and limit.ErrNotKept; with an error nothing is changed.
func (v *Handle) ExtendString(db int, key, more []byte, most int) (length int, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	value := p.e.Value
	if p.e.Kind != entry.String {
		if value, _, err = appendString(v.scratch[:0], &p.e); err != nil {
			return 0, err
		}
	}
	if p.e.Kind != entry.None && len(value)+len(more) > most {
		return 0, limit.ErrTooLong
	}
	e := entry.Entry{Value: value, Expiry: p.expiryOrNever()}
	if n := len(value) + len(more); n > cap(value) && n >= shared.Least {
		e.Value, e.Made = shared.New(value, len(more)+dense.Spare(n)), true
	}
	e.Value = append(e.Value, more...) // append extends the value in place if its capacity is large enough
	return len(e.Value), v.putString(s, &p, key, e)
}

// TakeString returns the string at key as [Handle.AppendString] does, and deletes the key. If the
// journal refuses effects, the error is limit.ErrNotKept and the key stays.
func (v *Handle) TakeString(dst []byte, db int, key []byte) (value []byte, found bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if value, found, err = v.reference(dst, &p.e); err != nil || !found {
		return dst, found, err
	}
	if v.refuses() {
		v.takeBack(value)
		return dst, true, limit.ErrNotKept
	}
	s.remove(&p, key)
	return value, true, nil
}

// ReadUntil returns the string at key as [Handle.AppendString] does, and sets the expiry of the key
// to at. [entry.NoExpiry] removes the expiry. If at has passed, the key is deleted at once. If the
// journal refuses effects, the error is limit.ErrNotKept and the expiry stays.
func (v *Handle) ReadUntil(dst []byte, db int, key []byte, at limit.Instant) (value []byte, found bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if value, found, err = v.reference(dst, &p.e); err != nil || !found || at == p.e.Expiry {
		return value, found, err
	}
	if v.refuses() {
		v.takeBack(value)
		return dst, true, limit.ErrNotKept
	}
	if at <= s.last {
		s.remove(&p, key)
	} else {
		s.setExpiry(&p, key, at)
	}
	return value, true, nil
}

// UpdateString replaces the string at key by the result of f. f gets the old value, which it must
// not change or keep. found says whether the key exists, and expiry is its expiry, or
// [entry.NoExpiry] for an absent key. f returns the new value and the new expiry, until. If value
// is nil, nothing is changed. If value has [shared.Least] bytes or more, it must have been made by
// [shared.New], and UpdateString takes it over; a shorter value is copied. f is called with the
// shard locked: it must not use the keyspace. UpdateString returns the error of f, or
// limit.ErrWrongType, limit.ErrFull or limit.ErrNotKept; with an error nothing is changed.
func (v *Handle) UpdateString(
	db int, key []byte, f func(old []byte, found bool, expiry limit.Instant) (value []byte, until limit.Instant, err error),
) error {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	old := p.e.Value
	if p.e.Kind != entry.String {
		var err error
		if old, _, err = appendString(v.scratch[:0], &p.e); err != nil {
			return err
		}
	}
	value, until, err := f(old, p.e.Kind != entry.None, p.expiryOrNever())
	if err != nil || value == nil {
		return err
	}
	return v.putString(s, &p, key, entry.Entry{Value: value, Expiry: until, Made: len(value) >= shared.Least})
}

// EachString calls f with the string at each of keys, in order and at one instant. found is false
// for a key that does not exist or holds no string. f must neither keep nor change value, and must
// not use the keyspace. If f returns false, the iteration ends.
func (v *Handle) EachString(db int, keys [][]byte, f func(value []byte, found bool) bool) {
	key := func(i int) []byte { return keys[i] }
	spots, set := v.inOrder(len(keys), key)
	defer v.unlockHere(v.lockSpots(&set, spots, maxHeldReads))
	v.visit(db, spots, key, func(_ int, _ *shard, p *place) bool {
		value := p.e.Value
		k := p.e.Kind.Plain()
		if k == entry.Cell {
			v.scratch, _, _ = appendString(v.scratch[:0], &p.e)
			value = v.scratch
		}
		return f(value, k == entry.String || k == entry.Cell)
	})
}

// SetStrings stores strings without an expiry, all at one instant. pairs has the keys and the
// values alternately, beginning with a key; the values are copied. If ifAbsent is true and one of
// the keys exists, nothing is changed and done is false. The errors are limit.ErrFull and
// limit.ErrNotKept. With an error nothing is changed, unless a table had no room; then some pairs
// are stored.
func (v *Handle) SetStrings(db int, pairs [][]byte, ifAbsent bool) (done bool, err error) {
	key := func(i int) []byte { return pairs[2*i] }
	spots, set := v.spread(len(pairs)/2, key)
	defer v.unlockHere(v.lockSpots(&set, spots, maxHeldWrites))
	if full := v.full(); full || ifAbsent {
		v.visit(db, spots, key, func(i int, _ *shard, p *place) bool {
			done = ifAbsent && p.e.Kind != entry.None
			if full && grows(p, pairs[2*i+1]) {
				err = limit.ErrFull
			}
			return !done
		})
		if done {
			return false, nil
		}
	}
	switch {
	case err != nil:
		return false, err
	case v.refuses():
		return false, limit.ErrNotKept
	}
	v.visit(db, spots, key, func(i int, s *shard, p *place) bool {
		if k := p.e.Kind; k != entry.None && k != entry.String {
			s.freed(db, pairs[2*i])
		}
		e := entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: pairs[2*i+1]}
		if !s.move(p, pairs[2*i], e) { // move fails only if the table has no room: memory was checked above
			err = limit.ErrFull
		}
		return err == nil
	})
	return err == nil, err
}
