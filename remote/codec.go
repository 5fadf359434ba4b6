package remote

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	store "github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/states"
)

// This is the format of a value in the engine. Numbers are big-endian, except in the limiter's
// state. Each line has the offset, the length and the meaning:
//
//	0   1  format, 1
//	1   1  kind, the numbers of package entry
//	2   1  n, how many older writers follow, 0 to 7
//	3   1  0
//	4   8  tag: the writer, a random number of each process, and the number of its write
//	12  8  stamp: the instant of the decision that wrote this, ns since 1970
//	20  8  expiry, ns since 1970
//	28  8n the tags of the latest write of each other writer, the newest first
//	..     the limiter's state, as in a snapshot
//
// The first 12 bytes differ in every write: a swap compares them.
const (
	format    = 1
	headerLen = 28
	tagLen    = 8
	mostOlder = 7
)

// longestKeep is the maximum time to live that is set for a value in the engine.
const longestKeep = 10 * 365 * 24 * time.Hour

// tag identifies one write of one process. The upper 32 bits are the process, and the lower 32 bits
// the number of the write. Tags of different processes have no order.
type tag uint64

func newTag(writer, sequence uint32) tag { return tag(writer)<<32 | tag(sequence) }

func (t tag) writer() uint32 { return uint32(t >> 32) }

// value is a decoded value of the engine. The zero value stands for an absent key.
type value struct {
	// raw has all bytes of the value, nil for an absent key. The bytes are never changed.
	raw   []byte
	tag   tag
	older []byte // the tags of the latest writes of other writers, in their form in raw
	stamp limit.Instant
	// entry is the stored entry, even if it has expired. Its Value is a slice of raw.
	entry entry.Entry
}

// decode returns the value v whose bytes are raw. v refers to raw. Empty raw stands for an absent
// key, because a bounded read cannot tell an empty string from an absent key. The error is
// [limit.ErrWrongType] if raw was not written by a server of this package.
func decode(raw []byte) (v value, err error) {
	if len(raw) == 0 {
		return value{}, nil
	}
	if len(raw) < headerLen || raw[0] != format || raw[2] > mostOlder || raw[3] != 0 {
		return value{}, limit.ErrWrongType
	}
	end := headerLen + tagLen*int(raw[2])
	if len(raw) < end {
		return value{}, limit.ErrWrongType
	}
	v = value{
		raw:   raw,
		tag:   tag(binary.BigEndian.Uint64(raw[4:])),
		older: raw[headerLen:end],
		stamp: limit.Instant(binary.BigEndian.Uint64(raw[12:])),
		entry: entry.Entry{
			Kind:   entry.Kind(raw[1]),
			Expiry: limit.Instant(binary.BigEndian.Uint64(raw[20:])),
			Value:  raw[end:],
		},
	}
	if states.Check(&v.entry) != nil {
		return value{}, limit.ErrWrongType
	}
	return v, nil
}

// at returns the entry of the key at the instant now. If the key is absent or the entry has
// expired, the result has the kind [entry.None].
func (v *value) at(now limit.Instant) entry.Entry {
	if v.entry.Expiry <= now {
		return entry.Entry{}
	}
	return v.entry
}

// full reports whether older has no more room, so that the value may have had writers whose tags
// are no longer in it.
func (v *value) full() bool { return len(v.older) == mostOlder*tagLen }

// writers calls f with the tag of the latest write of each writer, the newest first, until f
// returns false. For an absent key it does not call f.
func (v *value) writers(f func(tag) bool) {
	if v.raw == nil || !f(v.tag) {
		return
	}
	for o := v.older; len(o) > 0; o = o[tagLen:] {
		if !f(tag(binary.BigEndian.Uint64(o))) {
			return
		}
	}
}

// has reports whether the value contains the tag t, so that t is its writer's latest recorded
// write.
func (v *value) has(t tag) (found bool) {
	v.writers(func(one tag) bool {
		found = one == t
		return !found
	})
	return found
}

// wroteOf reports whether the value contains a tag of the process writer.
func (v *value) wroteOf(writer uint32) (found bool) {
	v.writers(func(one tag) bool {
		found = one.writer() == writer
		return !found
	})
	return found
}

// encode returns the bytes of the value that the write t stores in place of v: the entry e, which
// was decided at the instant stamp. The tags in v are kept, as far as there is room, except that
// of the same writer.
func (v *value) encode(t tag, stamp limit.Instant, e *entry.Entry) []byte {
	raw := make([]byte, headerLen, headerLen+len(v.older)+tagLen+len(e.Value))
	v.writers(func(one tag) bool {
		if one.writer() != t.writer() {
			raw = binary.BigEndian.AppendUint64(raw, uint64(one))
		}
		return len(raw) < headerLen+mostOlder*tagLen
	})
	raw[0], raw[1], raw[2] = format, byte(e.Kind), byte((len(raw)-headerLen)/tagLen)
	binary.BigEndian.PutUint64(raw[4:], uint64(t))
	binary.BigEndian.PutUint64(raw[12:], uint64(stamp))
	binary.BigEndian.PutUint64(raw[20:], uint64(e.Expiry))
	return append(raw, e.Value...)
}

// successor returns, in decoded form, the value whose bytes encode would return for the same
// arguments.
func (v *value) successor(t tag, stamp limit.Instant, e *entry.Entry) value {
	raw := v.encode(t, stamp, e)
	end := headerLen + tagLen*int(raw[2])
	next := value{raw: raw, tag: t, older: raw[headerLen:end], stamp: stamp, entry: *e}
	next.entry.Value = raw[end:]
	return next
}

// compared returns the first bytes of raw, which a swap compares. The result is empty for an absent
// key.
func compared(raw []byte) []byte { return raw[:min(store.TagLen, len(raw))] }

// sameWrite reports whether the values with the bytes a and b come from the same write, or are both
// absent.
func sameWrite(a, b []byte) bool { return slices.Equal(compared(a), compared(b)) }

// keepFor returns the time to live of a value in the engine: about a second longer than the time
// from stamp to expiry, but at most longestKeep. Servers decide only by the expiry inside the value
// whether the entry has expired.
func keepFor(expiry, stamp limit.Instant) time.Duration {
	d := max(0, expiry.Sub(stamp))
	if d >= longestKeep-time.Second {
		return longestKeep
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond) + time.Second
}
