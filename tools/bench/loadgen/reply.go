package loadgen

import (
	"bytes"
	"errors"
	"fmt"
)

// maxDepth is the maximum nesting of replies.
const maxDepth = 32

// maxReply limits a length in a reply; a server that announces more is broken.
const maxReply = 1 << 30

var errProtocol = errors.New("the server's bytes are not RESP")

// reply holds the parts of one reply that the generator uses. It refers to the bytes that it was
// parsed from.
type reply struct {
	// kind is the first byte of the reply: '+', '-', ':', '$', '*', or a type byte of RESP3.
	kind byte
	// length is the number of elements of an aggregate.
	length int64
	// ints are the integers at the beginning of an array, at most five, or the integer itself. n is
	// their number.
	ints [5]int64
	n    int
	// text is the line or the bulk string.
	text []byte
}

func (r *reply) isError() bool { return r.kind == '-' || r.kind == '!' }

// isPush reports whether this is a RESP3 push message and not a reply.
func (r *reply) isPush() bool { return r.kind == '>' }

// scanReply parses the first reply of b into r and returns its length, 0 if the reply is
// incomplete.
func scanReply(b []byte, r *reply) (int, error) {
	r.n, r.length, r.text = 0, 0, nil
	if len(b) == 0 {
		return 0, nil
	}
	r.kind = b[0]
	switch b[0] {
	case '*':
		return scanArray(b, r)
	case ':':
		v, n, err := scanInt(b)
		r.ints[0], r.n = v, 1
		return n, err
	}
	return scanOther(b, r, maxDepth)
}

// scanArray parses an array. It keeps the integers at its beginning, which are the content of a
// limiter's reply. It returns the length of the array, 0 if it is incomplete.
func scanArray(b []byte, r *reply) (int, error) {
	count, at, err := scanInt(b)
	if at == 0 {
		return 0, err
	}
	r.length = count
	for i := int64(0); i < count; i++ {
		if at < len(b) && b[at] == ':' && i < int64(len(r.ints)) && int64(r.n) == i {
			v, n, err := scanInt(b[at:])
			if n == 0 {
				return 0, err
			}
			r.ints[i] = v
			r.n++
			at += n
			continue
		}
		n, err := skipValue(b[at:], maxDepth)
		if n == 0 {
			return 0, err
		}
		at += n
	}
	return at, nil
}

// skipValue returns the length of the first value of b; 0 if the value is incomplete.
func skipValue(b []byte, depth int) (int, error) {
	var scratch reply
	if len(b) == 0 {
		return 0, nil
	}
	return scanOther(b, &scratch, depth)
}

// scanOther parses the first value of b, which may have any type, into r. It returns the length of
// the value; 0 if the value is incomplete.
func scanOther(b []byte, r *reply, depth int) (int, error) {
	if depth == 0 {
		return 0, fmt.Errorf("%w: nested too deep", errProtocol)
	}
	switch b[0] {
	case '+', '-', ':', ',', '#', '(', '_':
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return 0, nil
		}
		r.text = bytes.TrimSuffix(b[1:end], []byte{'\r'})
		return end + 1, nil
	case '$', '=', '!':
		return scanBulk(b, r)
	case '*', '~', '>':
		return scanElements(b, r, 1, depth)
	case '%':
		return scanElements(b, r, 2, depth)
	case '|':
		// Attributes precede the value that they describe.
		n, err := scanElements(b, r, 2, depth)
		if n == 0 || n == len(b) {
			return 0, err
		}
		r.kind = b[n]
		rest, err := scanOther(b[n:], r, depth-1)
		if rest == 0 {
			return 0, err
		}
		return n + rest, nil
	}
	return 0, fmt.Errorf("%w: a reply begins with %q", errProtocol, b[0])
}

func scanBulk(b []byte, r *reply) (int, error) {
	size, at, err := scanInt(b)
	if at == 0 || size < 0 {
		return at, err
	}
	end := at + int(size)
	if len(b) < end+2 {
		return 0, nil
	}
	r.text = b[at:end]
	return end + 2, nil
}

func scanElements(b []byte, r *reply, each int64, depth int) (int, error) {
	count, at, err := scanInt(b)
	if at == 0 {
		return 0, err
	}
	r.length = count
	for range max(count, 0) * each {
		n, err := skipValue(b[at:], depth-1)
		if n == 0 {
			return 0, err
		}
		at += n
	}
	return at, nil
}

// scanInt parses the integer in the first line of b, after the type byte. It returns the length of
// the line, 0 if the line is incomplete. Except for the type ':', a number above maxReply is an
// error.
func scanInt(b []byte) (v int64, n int, err error) {
	i, negative := 1, false
	if i < len(b) && b[i] == '-' {
		negative = true
		i++
	}
	first := i
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		v = v*10 + int64(b[i]-'0')
	}
	if i+1 >= len(b) {
		return 0, 0, nil
	}
	if i == first || i-first > 19 || b[i] != '\r' || b[i+1] != '\n' || b[0] != ':' && v > maxReply {
		return 0, 0, fmt.Errorf("%w: %q is not a number", errProtocol, b[1:min(len(b), 32)])
	}
	if negative {
		v = -v
	}
	return v, i + 2, nil
}
