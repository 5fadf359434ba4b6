package attack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// reply summarizes one reply: its length in bytes, and the text of its last line that is neither an
// error nor a length. errors counts error replies, including those inside an array; err is the
// first of them.
type reply struct {
	bytes  int64
	text   string
	err    string
	errors int64
}

// refused reports whether the reply, or a part of it, is an error.
func (r *reply) refused() bool { return r.err != "" }

var errNotRESP = errors.New("the server's bytes are not RESP")

// client is one connection, which one goroutine uses. When its context ends, its reads and writes
// fail.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	stop func() bool
}

// bufferSize is the size of the read buffer: large, because replies are large.
const bufferSize = 256 << 10

// dial connects to a server.
func dial(ctx context.Context, address string) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newClient(ctx, conn), nil
}

// newClient returns a client on a connection until ctx ends.
func newClient(ctx context.Context, conn net.Conn) *client {
	c := &client{conn: conn, in: bufio.NewReaderSize(conn, bufferSize)}
	c.stop = context.AfterFunc(ctx, c.abort)
	return c
}

// abort makes pending and later reads and writes fail.
func (c *client) abort() {
	_ = c.conn.SetDeadline(time.Unix(1, 0)) // fails only if the connection is closed, and then no deadline is needed
}

func (c *client) close() {
	c.stop()
	c.conn.Close()
}

func (c *client) send(words ...string) error {
	c.out = appendCommand(c.out[:0], words...)
	return c.flush()
}

// flush writes out. It does not keep a buffer that grew beyond 1 MiB.
func (c *client) flush() error {
	_, err := c.conn.Write(c.out)
	if cap(c.out) > 1<<20 {
		c.out = nil
	}
	c.out = c.out[:0]
	return err
}

// do sends one command and reads its reply. An error reply is not returned as an error.
func (c *client) do(words ...string) (reply, error) {
	if err := c.send(words...); err != nil {
		return reply{}, err
	}
	return c.receive()
}

// must sends one command and reads its reply. It returns an error reply as an error.
func (c *client) must(words ...string) (reply, error) {
	r, err := c.do(words...)
	if err == nil && r.refused() {
		err = fmt.Errorf("%s: %s", words[0], r.err)
	}
	return r, err
}

// receive reads one reply to its end.
func (c *client) receive() (reply, error) {
	var r reply
	for left := int64(1); left > 0; left-- {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return r, err
		}
		r.bytes += int64(len(line))
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return r, errNotRESP
		}
		more, err := c.element(&r, line[0], line[1:])
		if err != nil {
			return r, err
		}
		left += more
	}
	return r, nil
}

// element reads the rest of an element of a reply, and adds it to r. kind is the first byte of the
// element's first line, and rest has the others. element returns the number of elements that follow
// as parts of this one.
func (c *client) element(r *reply, kind byte, rest []byte) (int64, error) {
	switch kind {
	case '-':
		r.errors++
		if r.err == "" {
			r.err = string(rest)
		}
		return 0, nil
	case '+', ':', '_', '#', ',', '(':
		r.text = string(rest)
		return 0, nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	if err != nil {
		return 0, errNotRESP
	}
	switch kind {
	case '$':
		if n < 0 {
			return 0, nil
		}
		r.bytes += n + 2
		_, err := c.in.Discard(int(n) + 2)
		return 0, err
	case '*', '~', '>':
		return max(n, 0), nil
	case '%':
		return 2 * max(n, 0), nil
	}
	return 0, errNotRESP
}

// appendCommand appends a command as an array of bulk strings.
func appendCommand(b []byte, words ...string) []byte {
	b = appendHeader(b, '*', len(words))
	for _, w := range words {
		b = append(appendHeader(b, '$', len(w)), w...)
		b = append(b, '\r', '\n')
	}
	return b
}

func appendHeader(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}
