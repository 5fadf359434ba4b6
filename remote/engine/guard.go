package engine

import (
	"errors"
	"fmt"
	"net"
)

const (
	// maxBulk is the maximum length in bytes of a string in a reply, and maxElements the maximum
	// number of elements of an array. The client library allocates the announced memory before it
	// has read the data.
	maxBulk     = 16 << 20
	maxElements = 1 << 17
	// maxNested is the maximum depth of nested arrays. CLUSTER SLOTS has four. The client library
	// reads nested arrays recursively, and allocates memory for each.
	maxNested = 8
	// maxLine is the maximum length in bytes of a line of a reply, which is a number, a status or
	// an error.
	maxLine = 16 << 10
)

// errReply is the error for a reply that is too long or is not in RESP2.
var errReply = errors.New("the reply is too long, or is none")

// guardedConn is a connection that refuses replies which are too long. It parses only the heads
// of replies. After an invalid reply every read fails.
type guardedConn struct {
	net.Conn
	skip int64 // number of remaining bytes of the current string, including its line end
	line []byte
	size int // length in bytes of the current line so far; line has its beginning
	// open has the number of missing elements of each array that is being read, the innermost last.
	open []int64
	err  error
}

// Read reads from the connection and checks the replies. It returns an error instead of bytes of an
// invalid reply.
func (g *guardedConn) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	n, err := g.Conn.Read(p)
	if g.err = g.look(p[:n]); g.err != nil {
		return 0, g.err
	}
	return n, err
}

// look parses b, the next bytes of the replies, and returns an error if a reply is not valid.
func (g *guardedConn) look(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(g.skip, int64(len(b)))
			g.skip, b = g.skip-n, b[n:]
			continue
		}
		c := b[0]
		b = b[1:]
		if g.size++; g.size > maxLine {
			return errReply
		}
		if c != '\n' {
			if len(g.line) < cap(g.line) {
				g.line = append(g.line, c)
			}
			continue
		}
		if err := g.head(); err != nil {
			return err
		}
		g.line, g.size = g.line[:0], 0
	}
	return nil
}

// head checks the complete line in g.line, which begins a reply or an element.
func (g *guardedConn) head() error {
	if len(g.line) == 0 {
		return errReply
	}
	most := int64(maxElements)
	switch g.line[0] {
	case '+', '-', ':':
		return g.element(0)
	case '$':
		most = maxBulk
	case '*':
	default: // RESP2, which was requested, has no other types
		return errReply
	}
	n, err := number(g.line[1:])
	if err != nil || n > most {
		return fmt.Errorf("%w: it announces too much", errReply)
	}
	if g.line[0] == '*' {
		return g.element(n)
	}
	if n >= 0 {
		g.skip = n + 2
	}
	return g.element(0)
}

// element records the beginning of a reply with n elements. If an array is being read, the reply
// is an element of the innermost array. n is 0 for replies other than arrays.
func (g *guardedConn) element(n int64) error {
	if last := len(g.open) - 1; last >= 0 {
		g.open[last]--
	}
	if n > 0 {
		g.open = append(g.open, n)
	}
	if len(g.open) > maxNested {
		return fmt.Errorf("%w: its arrays lie too deep in each other", errReply)
	}
	for len(g.open) > 0 && g.open[len(g.open)-1] == 0 {
		g.open = g.open[:len(g.open)-1]
	}
	return nil
}

// number parses the length in the head of a reply. b includes the \r. -1 is the length of a null
// reply.
func number(b []byte) (int64, error) {
	if string(b) == "-1\r" {
		return -1, nil
	}
	if len(b) < 2 || len(b) > 12 || b[len(b)-1] != '\r' {
		return 0, errReply
	}
	var n int64
	for _, c := range b[:len(b)-1] {
		if c < '0' || c > '9' {
			return 0, errReply
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

// guard returns conn with bounds on its replies.
func guard(conn net.Conn) *guardedConn {
	return &guardedConn{Conn: conn, line: make([]byte, 0, 16)}
}
