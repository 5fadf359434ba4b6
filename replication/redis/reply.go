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

// longestValue bounds a value that is read, in bytes. Redis itself does not bound collections.
const longestValue = math.MaxInt32

// errReply is an error reply of the primary.
type errReply string

func (e errReply) Error() string { return "the primary replies " + strconv.Quote(printable(string(e))) }

// talk is a connection that sends commands and reads replies.
type talk struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	// dump is the last bulk string that was read.
	dump []byte
}

// deepest is how deep arrays in a reply may be nested.
const deepest = 8

// command appends a command to the output, which send sends.
func (t *talk) command(words ...string) {
	t.out = appendCommand(t.out, words...)
}

// send sends the commands.
func (t *talk) send() error {
	_, err := t.conn.Write(t.out)
	t.out = t.out[:0]
	return err
}

// head reads the first line of a reply, which must have that type.
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

// status reads a simple string, which must be want.
func (t *talk) status(want string) error {
	line, err := t.head('+')
	if err == nil && string(line) != want {
		err = fmt.Errorf("%w: %q instead of %s", errStream, printable(string(line)), want)
	}
	return err
}

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

// array reads the length of an array.
func (t *talk) array() (int, error) {
	line, err := t.head('*')
	if err != nil {
		return 0, err
	}
	return number(line, maxArgs)
}

// bulk reads a bulk string into t.dump. found is false for a null reply.
func (t *talk) bulk() (found bool, err error) {
	line, err := t.head('$')
	if err != nil {
		return false, err
	}
	return t.rest(line)
}

// rest reads the remainder of a bulk string, after its length.
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

// skip reads a reply of any type. If that is an integer, it returns its value and true.
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
