package loadgen

import (
	"bytes"
	"errors"
	"fmt"
)

// maxDepth bounds how deep replies nest.
const maxDepth = 32

// maxReply bounds a length in a reply: a server that announces more is broken.
const maxReply = 1 << 30

var errProtocol = errors.New("the server's bytes are not RESP")

// reply is what the generator wants to know about one reply. It refers to the
// bytes it was read from.
type reply struct {
	// kind is the type byte: '+', '-', ':', '$', '*' and those of RESP3.
	kind byte
	// length is the number of elements of an aggregate.
	length int64
	// ints are the integers that an array begins with, at most five, or the
	// integer itself; n is how many there are.
	ints [5]int64
	n    int
	// text is the line or the bulk string.
	text []byte
}

// isError reports whether the server refused the command.
func (r *reply) isError() bool { return r.kind == '-' || r.kind == '!' }

// isPush reports whether this is no reply but something that the server says on
// its own accord.
func (r *reply) isPush() bool { return r.kind == '>' }

// scanReply reads the first reply of b into r and returns its length, 0 if there
// is more of it to come.
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

// scanArray is the way of the limiters' replies: an array that begins with
// integers.
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

// skipValue returns the length of the first value of b.
func skipValue(b []byte, depth int) (int, error) {
	var scratch reply
	if len(b) == 0 {
		return 0, nil
	}
	return scanOther(b, &scratch, depth)
}

// scanOther reads a value of any type.
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
		// Attributes stand before the value that they are about.
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

// scanInt reads the integer of the line that b begins with, behind its type byte,
// and returns the length of the line, 0 if it is not all there. Lengths above
// maxReply are an error, whatever the type.
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
