package command

import "github.com/cellserver/cellserver/limit"

// Strings is the half of the store that plain strings and counters need. A cell of
// CL.THROTTLE is a string too, which reads as its TAT in decimal nanoseconds and
// becomes a plain one when it is changed here. Every call is atomic, happens at one
// instant and changes nothing if it returns an error; those that change something
// may return limit.ErrFull and limit.ErrNotKept.
type Strings interface {
	// SetString makes key hold value, whatever it held, and reports whether o let it.
	SetString(db int, key, value []byte, o SetOptions) (done bool, err error)
	// SwapString also returns what key held, as AppendString does. That has to be a string.
	SwapString(dst []byte, db int, key, value []byte, o SetOptions) (old []byte, found, done bool, err error)
	// AddInt adds to the number that key holds, 0 without it.
	AddInt(db int, key []byte, by int64) (sum int64, err error)
	// ExtendString puts more behind the string that key holds, which must not become
	// longer than most.
	ExtendString(db int, key, more []byte, most int) (length int, err error)
	// TakeString is AppendString that deletes the key.
	TakeString(dst []byte, db int, key []byte) (value []byte, found bool, err error)
	// ReadUntil is AppendString that makes the key end at at.
	ReadUntil(dst []byte, db int, key []byte, at limit.Instant) (value []byte, found bool, err error)
	// EachString calls f for what each of keys holds, until it returns false. A value is
	// valid during the call, and as long as a reply refers to it ([resp.Writer.Element]).
	EachString(db int, keys [][]byte, f func(value []byte, found bool) bool)
	// SetStrings makes every even of pairs hold the value behind it for ever. With
	// ifAbsent it does not if one of them exists.
	SetStrings(db int, pairs [][]byte, ifAbsent bool) (done bool, err error)
	// UpdateString makes key hold what f makes of it until the instant it returns; a
	// nil value changes nothing, nor does an error. f runs with locks held.
	UpdateString(db int, key []byte,
		f func(old []byte, found bool, expiry limit.Instant) (value []byte, until limit.Instant, err error)) error
}

// SetOptions say how a string is set.
type SetOptions struct {
	// Expiry is when it is to end, limit.MaxInstant for never; an instant that has
	// passed deletes the key.
	Expiry limit.Instant
	// KeepTTL leaves the expiry of a key that exists as it is.
	KeepTTL bool
	// IfExists and IfAbsent change nothing where the key does not, or does, exist.
	IfExists, IfAbsent bool
}
