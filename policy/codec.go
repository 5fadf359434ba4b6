package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// These are errors of decoding a record. A record is the stored form of an entry: a key and a
// value.
var (
	// ErrDeleted means that the value is empty, because the entry of the key was removed.
	ErrDeleted = errors.New("the entry was removed")
	// ErrRecord means that the key or the value does not have the form that [Entry.AppendKey] and
	// [Entry.AppendValue] write.
	ErrRecord = errors.New("not the record of an entry")
)

// AppendKey appends the key of the entry's record: "main/api", "try/api", or with the pattern
// "override/api/acme*".
func (e *Entry) AppendKey(dst []byte) []byte {
	dst = append(dst, kindNames[e.Kind]...)
	dst = append(dst, '/')
	dst = append(dst, e.Policy...)
	if e.Kind.HasPattern() {
		dst = append(dst, '/')
		dst = append(dst, e.Pattern...)
	}
	return dst
}

// ParseKey parses a key that [Entry.AppendKey] has written, and returns the kind, the policy and
// the pattern of the entry. pattern is "" for [Main] and [Candidate]. The error wraps [ErrRecord].
func ParseKey(key []byte) (kind Kind, policy, pattern string, err error) {
	name, rest, _ := bytes.Cut(key, []byte{'/'})
	for kind < kinds && kindNames[kind] != string(name) {
		kind++
	}
	if kind == kinds {
		return 0, "", "", fmt.Errorf("unknown kind: %w", ErrRecord)
	}
	if kind.HasPattern() {
		var after []byte
		rest, after, _ = bytes.Cut(rest, []byte{'/'})
		if CheckPattern(after) != nil {
			return 0, "", "", fmt.Errorf("pattern: %w", ErrRecord)
		}
		pattern = string(after)
	}
	if CheckName(rest) != nil {
		return 0, "", "", fmt.Errorf("name of the policy: %w", ErrRecord)
	}
	return kind, string(rest), pattern, nil
}

// AppendValue appends the value of the entry's record, a JSON object on one line: the texts of the
// clauses, and the fields that are not 0, in this order. Instants are in nanoseconds since the Unix
// epoch. For example
//
//	{"limits":["TB 200 100 1"],"ms":true,"comment":"a text","since":1700000000000000000}
func (e *Entry) AppendValue(dst []byte) []byte {
	dst = append(dst, '{')
	if e.Limits != nil {
		dst = append(dst, `"limits":[`...)
		for i, text := range e.Limits.Text {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, text)
		}
		if dst = append(dst, `],`...); e.Limits.Millis {
			dst = appendTrue(dst, "ms")
		}
	}
	for _, s := range Switches {
		if *s.Of(&e.Flags) {
			dst = appendTrue(dst, s.Field)
		}
	}
	if e.File {
		dst = appendTrue(dst, "file")
	}
	if e.Key.IP {
		dst = appendText(append(dst, `"key":`...), e.Key.String())
		dst = append(dst, ',')
	}
	if e.Notify != 0 {
		dst = appendText(append(dst, `"notify":`...), ShareText(e.Notify))
		dst = append(dst, ',')
	}
	if e.Classes != "" {
		dst = appendText(append(dst, `"classes":`...), e.Classes)
		dst = append(dst, ',')
	}
	if e.Factor != 0 {
		dst = AppendFactor(append(dst, `"factor":`...), e.Factor)
		dst = append(dst, ',')
	}
	if e.Comment != "" {
		dst = appendText(append(dst, `"comment":`...), e.Comment)
		dst = append(dst, ',')
	}
	if e.Until != limit.MaxInstant {
		dst = strconv.AppendInt(append(dst, `"until":`...), int64(e.Until), 10)
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(append(dst, `"since":`...), int64(e.Since), 10)
	return append(dst, '}')
}

// appendTrue appends a field with the value true.
func appendTrue(dst []byte, field string) []byte {
	return append(append(append(dst, '"'), field...), `":true,`...)
}

// appendText appends s, which has no control characters, as a JSON string.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// DecodeEntry returns the entry of the record with the given key and value. It accepts only what
// [Entry.AppendKey] and [Entry.AppendValue] write, with limits within the bounds o. If the value is
// empty, the error is [ErrDeleted]; [ParseKey] then tells which entry was removed. Otherwise the
// error wraps [ErrRecord] or the error of the invalid part of the entry.
func DecodeEntry(key, value []byte, o Bounds) (*Entry, error) {
	kind, policy, pattern, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	if len(value) == 0 {
		return nil, ErrDeleted
	}
	e := &Entry{Kind: kind, Policy: policy, Pattern: pattern, Until: limit.MaxInstant}
	if err := e.decode(value, o); err != nil {
		return nil, err
	}
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("record of an entry: %w", err)
	}
	if room := make([]byte, 0, 256); !bytes.Equal(e.AppendValue(room), value) { // for example, value has leading zeros
		return nil, fmt.Errorf("written in another way: %w", ErrRecord)
	}
	return e, nil
}

// decode reads the value of a record into e. It may accept more than AppendValue writes.
func (e *Entry) decode(value []byte, o Bounds) error {
	r := reader{rest: value}
	r.need("{")
	if r.has(`"limits":[`) {
		words := r.words()
		limits, err := ParseLimits(words, r.isTrue("ms"), o)
		if err != "" {
			return fmt.Errorf("limits of a record: %w", err)
		}
		e.Limits = limits
	}
	for _, s := range Switches {
		*s.Of(&e.Flags) = r.isTrue(s.Field)
	}
	e.File = r.isTrue("file")
	if r.has(`"key":`) {
		var err error
		if e.Key, err = ParseKeyForm(r.text()); err != nil {
			return fmt.Errorf("record of an entry: %w", err)
		}
		r.need(",")
	}
	if r.has(`"notify":`) {
		var err error
		if e.Notify, err = ParseMark(r.text()); err != nil {
			return fmt.Errorf("record of an entry: %w", err)
		}
		r.need(",")
	}
	if r.has(`"classes":`) {
		e.Classes = r.text()
		r.need(",")
	}
	if r.has(`"factor":`) {
		var err error
		if e.Factor, err = ParseFactor(r.until(',')); err != nil {
			return fmt.Errorf("record of an entry: %w", err)
		}
	}
	if r.has(`"comment":`) {
		e.Comment = r.text()
		r.need(",")
	}
	if r.has(`"until":`) {
		e.Until = r.instant(',')
	}
	r.need(`"since":`)
	e.Since = r.instant('}')
	if r.failed || len(r.rest) > 0 {
		return fmt.Errorf("a field of the value: %w", ErrRecord)
	}
	return nil
}
