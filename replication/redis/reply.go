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

// longestValue bounds a value that is read. Redis itself has no bound on collections.
const longestValue = math.MaxInt32

// errReply is an error that the primary replied with.
type errReply string

func (e errReply) Error() string { return "the primary replies " + strconv.Quote(printable(string(e))) }

// talk is a connection on which commands are sent and replies read.
type talk struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	// dump is the bulk string that was read last.
	dump []byte
}

// deepest is how deep arrays may lie in each other in a reply.
const deepest = 8

// command appends a command to what is sent next.
func (s *talk) command(words ...string) {
	s.out = appendCommand(s.out, words...)
}

// send sends the commands.
func (s *talk) send() error {
	_, err := s.conn.Write(s.out)
	s.out = s.out[:0]
	return err
}

// head reads the first line of a reply that has to be of a type.
func (s *talk) head(kind byte) ([]byte, error) {
	line, err := readLine(s.in)
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

// status reads a status, which has to be a certain one.
func (s *talk) status(want string) error {
	line, err := s.head('+')
	if err == nil && string(line) != want {
		err = fmt.Errorf("%w: %q instead of %s", errStream, printable(string(line)), want)
	}
	return err
}

func (s *talk) integer() (int64, error) {
	line, err := s.head(':')
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no number", errStream, printable(string(line)))
	}
	return n, nil
}

// array reads how many elements an array has.
func (s *talk) array() (int, error) {
	line, err := s.head('*')
	if err != nil {
		return 0, err
	}
	return number(line, mostArgs)
}

// bulk reads a bulk string into s.dump. There is none if it is null.
func (s *talk) bulk() (found bool, err error) {
	line, err := s.head('$')
	if err != nil {
		return false, err
	}
	return s.rest(line)
}

// rest reads what belongs to the length of a bulk string.
func (s *talk) rest(length []byte) (found bool, err error) {
	if s.dump = s.dump[:0]; string(length) == "-1" {
		return false, nil
	}
	n, err := number(length, longestValue)
	if err != nil {
		return false, fmt.Errorf("%w: length of a reply: %w", errStream, err)
	}
	if s.dump, err = appendFrom(s.dump, s.in, n); err != nil {
		return false, err
	}
	var end [2]byte
	if _, err := io.ReadFull(s.in, end[:]); err != nil {
		return false, whole(err)
	}
	if end != [2]byte{'\r', '\n'} {
		return false, fmt.Errorf("%w: a reply does not end where its length says", errStream)
	}
	return true, nil
}

// skip reads a reply of any type, and returns its number if it is one.
func (s *talk) skip(depth int) (n int64, is bool, err error) {
	line, err := readLine(s.in)
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
		_, err = s.rest(line[1:])
		return 0, false, err
	case '*':
		elements, err := number(line[1:], mostArgs)
		for range elements {
			if err == nil {
				_, _, err = s.skip(depth + 1)
			}
		}
		return 0, false, err
	case '-':
		return 0, false, errReply(line[1:])
	}
	return 0, false, nil
}
