// Package states has the states of keys as the values of an engine contain them. It checks them, because a value may be
// any bytes, and it decides joint asks, whose state has several parts.
package states

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Joint is the kind of a value that has the parts of a joint state: see [decide.Joint]. Only values in the engine
// have this kind.
//
// The bytes of such an entry are its parts, in the order of their numbers. Numbers are big-endian. Each line has the
// offset in a part, the length and the meaning:
//
//	0   1  number, from 1
//	1   1  kind, the numbers of package entry
//	2   8  expiry, ns since 1970
//	10  4  length of the rest
//	14  .. the state of the part, as in a snapshot
//
// The entry expires with the last of its parts.
const Joint entry.Kind = 100

// partHead is the number of bytes of a part before its state.
const partHead = 14

// Check returns an error if e is not the state of a limiter, which may remember calls and have reservations, nor a
// joint state. A plain string is such a state if it is a number, as INCREX stores it.
func Check(e *entry.Entry) error {
	k := e.Kind
	switch {
	case k.Remembers() && k.IsLimiter():
		return checkRemembering(k.Plain(), e.Value)
	case k == entry.Cell && len(e.Value) == 0:
		return nil
	case k == entry.Cell:
		return gcra.Check(e.Value)
	case k == entry.String:
		return counter.Check(e.Value)
	case k.IsWindow():
		return slidingwindow.Check(k.WindowMode(), e.Value)
	case k.IsBucket():
		return tokenbucket.Check(k.BucketMode(), e.Value)
	case k.IsLease():
		return concurrency.Check(k.LeaseMode(), e.Value)
	case k == entry.Ban:
		return ban.Check(e.Value)
	case k == Joint:
		return checkParts(e.Value)
	}
	return limit.ErrWrongType
}

// nextPart decodes the first part of raw. rest has the bytes after it, and the entry of the part is a slice of raw. The
// error is [limit.ErrWrongType] if raw does not begin with a part. The state of the part is not checked.
func nextPart(raw []byte) (p decide.Part, rest []byte, err error) {
	if len(raw) < partHead || raw[0] == 0 {
		return p, nil, limit.ErrWrongType
	}
	n := binary.BigEndian.Uint32(raw[10:])
	if uint64(n) > uint64(len(raw)-partHead) {
		return p, nil, limit.ErrWrongType
	}
	end := partHead + int(n)
	p = decide.Part{Number: raw[0], Entry: entry.Entry{
		Kind: entry.Kind(raw[1]), Expiry: limit.Instant(binary.BigEndian.Uint64(raw[2:])), Value: raw[partHead:end:end],
	}}
	return p, raw[end:], nil
}

// AppendLive appends to into the parts in all that are live at now. all is the value of an entry of the kind [Joint] that
// passes [Check], and the entries of the parts are slices of it.
func AppendLive(into []decide.Part, all []byte, now limit.Instant) []decide.Part {
	for len(all) > 0 {
		p, rest, err := nextPart(all)
		if err != nil {
			break
		}
		if all = rest; p.Entry.Expiry > now {
			into = append(into, p)
		}
	}
	return into
}

// appendParts appends the bytes of all to dst, and returns them with the expiry of the last part.
func appendParts(dst []byte, all []decide.Part) (raw []byte, expiry limit.Instant) {
	expiry = limit.MinInstant
	for i := range all {
		e := &all[i].Entry
		expiry = max(expiry, e.Expiry)
		dst = append(dst, all[i].Number, byte(e.Kind))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Expiry))
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Value)))
		dst = append(dst, e.Value...)
	}
	return dst, expiry
}

// checkParts returns an error if raw is not a sequence of one or more parts with ascending numbers, or a part is not
// the state of a limiter or of bans.
func checkParts(raw []byte) error {
	if len(raw) == 0 {
		return limit.ErrWrongType
	}
	for last := uint8(0); len(raw) > 0; {
		p, rest, err := nextPart(raw)
		if err == nil {
			err = checkPart(&p.Entry)
		}
		if err != nil || p.Number <= last {
			return limit.ErrWrongType
		}
		last, raw = p.Number, rest
	}
	return nil
}

// checkPart returns an error if e cannot be a part.
func checkPart(e *entry.Entry) error {
	if e.Kind == entry.String || e.Kind == Joint {
		return limit.ErrWrongType
	}
	return Check(e)
}

// checkRemembering returns an error if value is not a valid value of a limiter of kind k with remembered calls,
// reservations, or both.
func checkRemembering(k entry.Kind, value []byte) error {
	state, err := forgetful(k, value)
	if err != nil {
		return err
	}
	if len(state) == 0 {
		return limit.ErrWrongType
	}
	return Check(&entry.Entry{Kind: k, Value: state})
}

// forgetful returns the state of a limiter of kind k in value, which also has remembered calls, reservations, or both.
func forgetful(k entry.Kind, value []byte) (state []byte, err error) {
	state, records := value, true
	if reservation.Marked(value) {
		form, ok := formOf(k)
		if !ok {
			return nil, limit.ErrWrongType
		}
		if state, records, err = reservation.Check(value, form); err != nil {
			return nil, err
		}
	}
	if records {
		return idempotency.Check(state)
	}
	return state, nil
}

// Plain returns the limiter in e without the calls that it remembers and its reservations. Its Value is a slice of that of
// e, which passes [Check]. An entry of another kind stays the same.
func Plain(e *entry.Entry) entry.Entry {
	plain := *e
	if k := e.Kind; k.Remembers() && k.IsLimiter() {
		plain.Kind = k.Plain()
		plain.Value, _ = forgetful(plain.Kind, e.Value) // there is no error, because e was checked
	}
	return plain
}

// formOf returns the form of the reservations of a limiter of kind k. ok is false if it can have none.
func formOf(k entry.Kind) (f reservation.Form, ok bool) {
	switch {
	case k.IsWindow():
		return reservation.Window, true
	case k.IsBucket() && k.BucketMode() == tokenbucket.Greedy:
		return reservation.Bucket, true
	case k.IsBucket():
		return reservation.Converted, true
	}
	return 0, false
}

// Decide decides a, a [decide.Joint] about one state, on the entry e at now. parts is memory for the decision, from
// which [EntryOf] makes the new entry if parts.Changed is set. most is the maximum number of bytes of that entry. If e
// is the state of one limiter, that state is the first part. It returns the error of the program.
func Decide(parts *decide.Parts, a *decide.Ask, e *entry.Entry, now limit.Instant, most int) error {
	parts.Others = parts.Others[:0]
	load(&parts.State, e, now, most)
	return parts.Run(a, now)
}

// DecideSeveral is [Decide] for n entries. entryOf returns the entry with the given index: 0 is the entry of the key of
// a, and the others are the entries of a.Others.
func DecideSeveral(
	parts *decide.Parts, a *decide.Ask, n int, entryOf func(i int) *entry.Entry, now limit.Instant, most int,
) error {
	others := parts.Others[:cap(parts.Others)]
	for len(others) < n-1 {
		others = append(others, decide.State{})
	}
	parts.Others = others[:n-1]
	load(&parts.State, entryOf(0), now, most)
	for i := range parts.Others {
		load(&parts.Others[i], entryOf(i+1), now, most)
	}
	return parts.Run(a, now)
}

// load sets s to the state in e at now.
func load(s *decide.State, e *entry.Entry, now limit.Instant, most int) {
	s.All, s.Changed = s.All[:0], false
	switch e.Kind {
	case entry.None:
	case Joint:
		s.All = AppendLive(s.All, e.Value, now)
	default: // a tool has copied the value from a server that stores each part under a key of its own
		s.All = append(s.All, decide.Part{Number: 1, Entry: *e})
	}
	s.Most, s.Each = most, partHead
}

// EntryOf returns the entry with the parts of s, whose bytes it appends to dst; an entry of kind None if there are no
// parts. If the first part is the only one, the entry has the kind of that part, which takes less memory in the engine
// than the kind [Joint]. A part that remembers calls or has reservations is always stored as a Joint, because a
// reservation may be linked with parts that only the program of the state finds.
func EntryOf(s *decide.State, dst []byte) entry.Entry {
	switch {
	case len(s.All) == 0:
		return entry.Entry{}
	case len(s.All) == 1 && s.All[0].Number == 1 && !s.All[0].Entry.Kind.Remembers():
		e := s.All[0].Entry
		e.Value = append(dst, e.Value...)
		return e
	}
	raw, expiry := appendParts(dst, s.All)
	return entry.Entry{Kind: Joint, Expiry: expiry, Value: raw}
}
