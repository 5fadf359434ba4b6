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

// A string is a key of kind [entry.String], or a cell, which reads as its TAT in decimal and
// becomes a plain string when one of the methods here changes it. For keys of other kinds all
// methods but those that overwrite return limit.ErrWrongType.

// SetOptions are the options of [Handle.SetString].
type SetOptions struct {
	// Expiry is when the key expires; an instant that has passed deletes the key.
	Expiry limit.Instant
	// KeepTTL keeps the expiry of a key that exists.
	KeepTTL bool
	// IfExists stores nothing if the key does not exist, IfAbsent if it does.
	IfExists, IfAbsent bool
}

// SetString stores value at key, whatever the key held, and reports whether o allowed it. The
// errors are limit.ErrFull and limit.ErrNotKept; with an error nothing is changed.
func (v *Handle) SetString(db int, key, value []byte, o SetOptions) (done bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return v.setString(s, &p, key, value, o)
}

// SwapString is SetString that also returns the old value, as [Handle.AppendString] does. If the
// key holds no string, the error is limit.ErrWrongType.
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

// putString stores e as a string; the caller may leave its kind unset.
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
		// The first waiter for the limiter that was here has to look again.
		s.freed(p.db, key)
	}
	e.Kind = entry.String
	return s.put(p, key, e)
}

// grows reports whether value takes more memory than the entry at p. A number does not count as
// growth: counters go on when memory is full, as limiters do.
func grows(p *place, value []byte) bool {
	return p.old == entry.None || len(value) > max(len(p.e.Value), entry.MaxNumber) || busy(p.old, p.e.Value)
}

// busy reports whether replies refer to a value, so that its replacement takes memory in addition
// to it.
func busy(k entry.Kind, value []byte) bool {
	return k == entry.String && len(value) >= shared.Least && shared.Busy(value)
}

// reference returns the string e for a reply, appended to dst. A long value is not copied: the result is
// the stored memory itself, held by [shared.Hold] with [Keyspace.Ledger], and the caller has to
// release it.
func (v *Handle) reference(dst []byte, e *entry.Entry) (value []byte, found bool, err error) {
	if e.Kind == entry.String && len(e.Value) >= shared.Least {
		shared.Hold(e.Value, &v.ks.mem.Memory)
		return e.Value, true, nil
	}
	return appendString(dst, e)
}

// takeBack releases a value that lend has returned and that no reply will contain.
func (v *Handle) takeBack(value []byte) {
	if len(value) >= shared.Least {
		lent := shared.Held(value, &v.ks.mem.Memory)
		lent.Release()
	}
}

// appendString appends the text of a live string or cell.
func appendString(dst []byte, e *entry.Entry) (value []byte, found bool, err error) {
	switch e.Kind {
	case entry.None:
		return dst, false, nil
	case entry.String:
		return append(dst, e.Value...), true, nil
	case entry.Cell:
		return gcra.AppendDecimal(dst, entry.CellTAT(e)), true, nil
	}
	return dst, true, limit.ErrWrongType
}

// expiryOrNever returns the expiry of the live key at p, or NoExpiry for an absent key.
func (p *place) expiryOrNever() limit.Instant {
	if p.e.Kind == entry.None {
		return entry.NoExpiry
	}
	return p.e.Expiry
}

// AddInt adds by to the number at key, or to 0 if the key does not exist, and returns the sum. The
// errors are limit.ErrWrongType, limit.ErrNotInteger, limit.ErrSumOverflow, limit.ErrFull and
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

// addInt returns a + b and whether the sum fits.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// storedInt returns the number that a string holds, as Redis parses it: only in the form that Redis
// itself writes, without a plus sign or leading zeros.
func storedInt(e *entry.Entry) (int64, error) {
	switch e.Kind {
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

// ExtendString appends more to the string at key and returns its new length. If that would exceed
// most, the error is limit.ErrTooLong. The other errors are limit.ErrWrongType, limit.ErrFull and
// limit.ErrNotKept; with an error nothing is changed.
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
	e.Value = append(e.Value, more...) // in place, if the capacity allows it
	return len(e.Value), v.putString(s, &p, key, e)
}

// TakeString is [Handle.AppendString] that also deletes the key.
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

// ReadUntil is [Handle.AppendString] that also sets the expiry of the key to at. [entry.NoExpiry]
// removes the expiry, and an instant that has passed deletes the key at once.
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

// UpdateString stores the result of f at key. f gets the old value, which it must not change,
// whether the key exists, and its expiry. A nil value changes nothing. A value of [shared.Least]
// bytes or more must be made by [shared.New] and is taken over. An error of f is returned. f runs
// under the lock of the shard. The other errors are limit.ErrWrongType, limit.ErrFull and
// limit.ErrNotKept.
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

// EachString calls f with the string at each of keys, at one instant; a key that holds no string
// counts as absent. f must neither keep nor change the value. It ends the iteration by returning
// false.
func (v *Handle) EachString(db int, keys [][]byte, f func(value []byte, found bool) bool) {
	key := func(i int) []byte { return keys[i] }
	spots, set := v.inOrder(len(keys), key)
	defer v.unlockHere(v.lockSpots(&set, spots, maxHeldReads))
	v.visit(db, spots, key, func(_ int, _ *shard, p *place) bool {
		value := p.e.Value
		if p.e.Kind == entry.Cell {
			v.scratch, _, _ = appendString(v.scratch[:0], &p.e)
			value = v.scratch
		}
		return f(value, p.e.Kind == entry.String || p.e.Kind == entry.Cell)
	})
}

// SetStrings stores pairs, which are keys and values by turns, without an expiry and at one
// instant. With ifAbsent it changes nothing if one of the keys exists, and done is false. The
// errors are limit.ErrFull and limit.ErrNotKept; nothing is changed then either.
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
		if !s.move(p, pairs[2*i], e) { // memory was checked above
			err = limit.ErrFull
		}
		return err == nil
	})
	return err == nil, err
}
