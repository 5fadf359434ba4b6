package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
)

// longestValue is the maximum number of bytes of a value that is read. Redis itself has no limit
// for collections.
const longestValue = math.MaxInt32

// errReply is an error reply of the primary. Its value is the text after the "-".
type errReply string

func (e errReply) Error() string { return "the primary replies " + strconv.Quote(printable(string(e))) }

// talk sends commands over a connection and reads the replies.
type talk struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	// dump is the bulk string that was read last.
	dump []byte
}

// deepest is the maximum depth of nested arrays in a reply.
const deepest = 8

// command appends a command to the output. send sends the output.
func (t *talk) command(words ...string) {
	t.out = appendCommand(t.out, words...)
}

// send sends the commands in the output, and empties the output.
func (t *talk) send() error {
	_, err := t.conn.Write(t.out)
	t.out = t.out[:0]
	return err
}

// head reads the first line of a reply and returns it without its first byte, which must be kind.
// If the reply is an error, head returns an [errReply].
func (t *talk) head(kind byte) ([]byte, error) {
	line, err := readLine(t.in)
	if err != nil {
		return nil, whole(err)
	}
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case len(line) > 0 && line[0] == '-':
		return nil, errReply(line[1:])
	case len(line) == 0 || line[0] != kind:
		return nil, fmt.Errorf("%w: %q is not the expected reply", errStream, printable(string(line)))
	}
	return line[1:], nil
}

// status reads a simple string, which must be equal to want.
func (t *talk) status(want string) error {
	line, err := t.head('+')
	if err == nil && string(line) != want {
		err = fmt.Errorf("%w: %q instead of %s", errStream, printable(string(line)), want)
	}
	return err
}

// integer reads an integer reply.
func (t *talk) integer() (int64, error) {
	line, err := t.head(':')
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no number", errStream, printable(string(line)))
	}
	return n, nil
}

// array reads the first line of an array and returns the number of its elements.
func (t *talk) array() (int, error) {
	line, err := t.head('*')
	if err != nil {
		return 0, err
	}
	return number(line, maxArgs)
}

// bulk reads a bulk string into t.dump. found is false if the reply is null.
func (t *talk) bulk() (found bool, err error) {
	line, err := t.head('$')
	if err != nil {
		return false, err
	}
	return t.rest(line)
}

// rest reads the rest of a bulk string into t.dump. length is the text of its length, which was
// read before. found is false if the reply is null, with the length -1.
func (t *talk) rest(length []byte) (found bool, err error) {
	if t.dump = t.dump[:0]; string(length) == "-1" {
		return false, nil
	}
	n, err := number(length, longestValue)
	if err != nil {
		return false, fmt.Errorf("%w: length of a reply: %w", errStream, err)
	}
	if t.dump, err = appendFrom(t.dump, t.in, n); err != nil {
		return false, err
	}
	var end [2]byte
	if _, err := io.ReadFull(t.in, end[:]); err != nil {
		return false, whole(err)
	}
	if end != [2]byte{'\r', '\n'} {
		return false, fmt.Errorf("%w: a reply does not end where its length says", errStream)
	}
	return true, nil
}

// skip reads a reply of any type and discards it. If the reply is an integer, n is its value and is
// is true. If the reply is an error, err is an [errReply]. depth is the number of arrays around the
// reply.
func (t *talk) skip(depth int) (n int64, is bool, err error) {
	line, err := readLine(t.in)
	if err != nil {
		return 0, false, whole(err)
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 || depth > deepest {
		return 0, false, fmt.Errorf("%w: no reply", errStream)
	}
	switch line[0] {
	case ':':
		n, err = strconv.ParseInt(string(line[1:]), 10, 64)
		return n, err == nil, err
	case '$':
		_, err = t.rest(line[1:])
		return 0, false, err
	case '*':
		elements, err := number(line[1:], maxArgs)
		for range elements {
			if err == nil {
				_, _, err = t.skip(depth + 1)
			}
		}
		return 0, false, err
	case '-':
		return 0, false, errReply(line[1:])
	}
	return 0, false, nil
}
