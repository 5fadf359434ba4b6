package policy

import (
	"bytes"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// reader parses a value from its beginning. rest has the bytes that have not been read. failed is
// set by the first error; after that, no result is valid.
type reader struct {
	rest   []byte
	failed bool
}

// has skips s if it comes next, and reports whether it did.
func (r *reader) has(s string) bool {
	if len(r.rest) < len(s) || string(r.rest[:len(s)]) != s {
		return false
	}
	r.rest = r.rest[len(s):]
	return true
}

// isTrue skips a field with the value true if it comes next, and reports whether it did.
func (r *reader) isTrue(field string) bool { return r.has(`"` + field + `":true,`) }

// need skips s. If s does not come next, need sets failed.
func (r *reader) need(s string) {
	if !r.has(s) {
		r.failed = true
	}
}

// until returns the bytes before the next byte end, and skips them and that byte. If there is no
// byte end, until sets failed and returns nil.
func (r *reader) until(end byte) []byte {
	i := bytes.IndexByte(r.rest, end)
	if i < 0 {
		r.failed = true
		return nil
	}
	b := r.rest[:i]
	r.rest = r.rest[i+1:]
	return b
}

// instant reads a decimal number, and skips the byte end after it. If there is no such number,
// instant sets failed.
func (r *reader) instant(end byte) limit.Instant {
	n, err := strconv.ParseInt(string(r.until(end)), 10, 64)
	if err != nil {
		r.failed = true
	}
	return limit.Instant(n)
}

// text parses a string whose only escape sequences are those of quotes and backslashes.
func (r *reader) text() string {
	r.need(`"`)
	var s []byte
	for {
		i := bytes.IndexAny(r.rest, `"\`)
		if i < 0 || r.rest[i] == '\\' && i+1 == len(r.rest) {
			r.failed = true
			return ""
		}
		s = append(s, r.rest[:i]...)
		if r.rest[i] == '"' {
			r.rest = r.rest[i+1:]
			return string(s)
		}
		s = append(s, r.rest[i+1])
		r.rest = r.rest[i+2:]
	}
}

// words parses the strings of an array, up to the end of the array and the comma after it, and
// returns the words of all strings.
func (r *reader) words() [][]byte {
	words := make([][]byte, 0, 16)
	for !r.failed {
		words = append(words, bytes.Split([]byte(r.text()), []byte{' '})...)
		if r.has("],") {
			break
		}
		r.need(",")
	}
	return words
}
