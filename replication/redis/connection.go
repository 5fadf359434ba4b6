package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cellserver/cellserver/resp"
)

// maxReply is the maximum length of the reply to AUTH, in bytes.
const maxReply = 1 << 10

// Authenticate sends AUTH over conn and waits for the reply. If user is "", AUTH has the password
// only. If password is "", Authenticate sends nothing. It returns a connection over conn that is
// closed when a read or write takes longer than timeout; a timeout of 0 means no limit. If ctx ends
// before the reply, or AUTH fails, conn is closed and Authenticate returns an error.
func Authenticate(ctx context.Context, conn net.Conn, user, password string, timeout time.Duration) (net.Conn, error) {
	conn = &deadlineConn{conn, timeout}
	if password == "" {
		return conn, nil
	}
	words := []string{"AUTH", password}
	if user != "" {
		words = []string{"AUTH", user, password}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := auth(conn, words); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// auth sends the command words and reads the reply, but no byte after it. The error describes what
// is wrong with the reply.
func auth(conn net.Conn, words []string) error {
	if _, err := conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		return fmt.Errorf("sending AUTH: %w", err)
	}
	var line [maxReply]byte
	for i := range line {
		if _, err := conn.Read(line[i : i+1]); err != nil {
			return fmt.Errorf("reading the answer to AUTH: %w", err)
		}
		if line[i] != '\n' {
			continue
		}
		if line[0] != '+' {
			return fmt.Errorf("the primary answered AUTH with %q", line[:i])
		}
		return nil
	}
	return errors.New("the answer to AUTH is too long")
}

// deadlineConn is a connection that is closed when a read or a write takes longer than timeout.
type deadlineConn struct {
	net.Conn
	timeout time.Duration // maximum time of a read or write; 0 means no limit
}

func (c *deadlineConn) Read(p []byte) (int, error) {
	defer c.start()()
	return c.Conn.Read(p)
}

func (c *deadlineConn) Write(p []byte) (int, error) {
	defer c.start()()
	return c.Conn.Write(p)
}

// start starts a timer that closes the connection after the timeout, and returns a function that
// stops the timer.
func (c *deadlineConn) start() (stop func()) {
	if c.timeout <= 0 {
		return func() {}
	}
	t := time.AfterFunc(c.timeout, func() { _ = c.Close() })
	return func() { t.Stop() }
}
