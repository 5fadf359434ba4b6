package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// longestCommand is the maximum length of a command of the stream in bytes. maxArgs is the maximum
// number of its arguments, and longestLine the maximum length of a line in bytes. A primary accepts
// arguments of 512 MiB, and 1 GiB in the query buffer of a client.
const (
	longestCommand = 1 << 30
	maxArgs        = 1 << 24
	longestLine    = 64 << 10
)

// kept is the maximum capacity of a buffer that is kept for the next command: 1 MiB.
const kept = 1 << 20

// piece is the maximum number of bytes that are allocated before the announced bytes arrive.
const piece = 64 << 10

// errStream is wrapped by errors about bytes that are not a stream of commands.
var errStream = errors.New("not a stream of commands")

// commands reads the stream of a primary: arrays of bulk strings, and inline commands. Empty
// lines are keepalives. It allocates memory as bytes arrive, and not according to an announced
// length.
type commands struct {
	in *bufio.Reader
	// consumed is the number of bytes of the stream that were read.
	consumed int64
	// buf has the arguments of the command one after another. ends has the index of the end of
	// each argument in buf.
	buf  []byte
	ends []int
	args [][]byte
}

// maxRound is the maximum number of bytes that are read from the stream between two calls of round: see
// rounds.
const maxRound = 64 << 10

// rounds is a reader that calls round before each read that may block, and after at most
// [maxRound] bytes.
type rounds struct {
	in    *bufio.Reader
	round func()
}

// Read calls round and then reads at most maxRound bytes.
func (r *rounds) Read(p []byte) (int, error) {
	r.round()
	return r.in.Read(p[:min(len(p), maxRound)])
}

// next returns the words of the next command, or none for an empty line. The words are valid
// until the next call.
func (c *commands) next() (args [][]byte, err error) {
	c.reuse()
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if len(line) == 0 || line[0] != '*' {
		return bytes.Fields(line), nil
	}
	n, err := number(line[1:], maxArgs)
	if err != nil {
		return nil, fmt.Errorf("%w: number of arguments: %w", errStream, err)
	}
	for range n {
		if err := c.bulk(); err != nil {
			return nil, err
		}
	}
	from := 0
	for _, end := range c.ends {
		c.args = append(c.args, c.buf[from:end:end])
		from = end
	}
	return c.args, nil
}

// reuse empties the buffers. It drops buffers that a large command has enlarged.
func (c *commands) reuse() {
	if cap(c.buf) > kept || cap(c.ends) > kept/8 {
		c.buf, c.ends, c.args = nil, nil, nil
	}
	c.buf, c.ends, c.args = c.buf[:0], c.ends[:0], c.args[:0]
}

// bulk reads a bulk string, the next argument of the command, into buf, and adds its end to ends.
func (c *commands) bulk() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) == 0 || line[0] != '$' {
		return fmt.Errorf("%w: %q is not the length of an argument", errStream, printable(string(line)))
	}
	n, err := number(line[1:], longestCommand)
	if err != nil {
		return fmt.Errorf("%w: length of an argument: %w", errStream, err)
	}
	if n > longestCommand-len(c.buf) {
		return fmt.Errorf("%w: a command of more than %d bytes", errStream, longestCommand)
	}
	if c.buf, err = appendFrom(c.buf, c.in, n); err != nil {
		return err
	}
	var end [2]byte
	if _, err := io.ReadFull(c.in, end[:]); err != nil {
		return whole(err)
	}
	if end != [2]byte{'\r', '\n'} {
		return fmt.Errorf("%w: an argument does not end where its length says", errStream)
	}
	c.consumed += int64(n) + 2
	c.ends = append(c.ends, len(c.buf))
	return nil
}

// line reads a line and returns it without its line end.
func (c *commands) line() ([]byte, error) {
	line, err := readLine(c.in)
	if err != nil {
		return nil, err
	}
	c.consumed += int64(len(line))
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// readLine returns the next line of in with its line end. The line is valid until the next read
// from in. A line of more than longestLine bytes, or one that does not fit into the buffer of in,
// is an error.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && len(line) > longestLine:
		return nil, fmt.Errorf("%w: a line of more than %d bytes", errStream, min(longestLine, in.Size()))
	case err != nil:
		return nil, err
	}
	return line, nil
}

// appendFrom appends n bytes of in to dst. It reads them in pieces, and allocates the memory of each
// piece before it reads it. On error it returns dst with the pieces that were read in full.
func appendFrom(dst []byte, in *bufio.Reader, n int) ([]byte, error) {
	for n > 0 {
		part := min(n, piece)
		from := len(dst)
		dst = slices.Grow(dst, part)[:from+part]
		if _, err := io.ReadFull(in, dst[from:]); err != nil {
			return dst[:from], whole(err)
		}
		n -= part
	}
	return dst, nil
}

// whole replaces io.EOF by io.ErrUnexpectedEOF. It is for input that must not end.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number parses digits as a decimal number from 0 to bound.
func number(digits []byte, bound int) (int, error) {
	if len(digits) == 0 || len(digits) > 10 || digits[0] == '+' || digits[0] == '-' {
		return 0, fmt.Errorf("%q is no number from 0 to %d", printable(string(digits)), bound)
	}
	n, err := strconv.Atoi(string(digits))
	if err != nil || n > bound {
		return 0, fmt.Errorf("%q is no number from 0 to %d", printable(string(digits)), bound)
	}
	return n, nil
}
