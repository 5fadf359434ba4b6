package inproc

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/simnet"
)

// Patience is the maximum time that a [Client] waits for something that must happen. It only
// determines how long a broken test takes to fail.
const Patience = time.Minute

// Client is a raw connection of a test. It sends and compares bytes. It fails the test if something
// does not happen as required.
type Client struct {
	net.Conn
	// R reads the bytes that were received.
	R *bufio.Reader
	// Patience is the maximum time to wait for a reply. NewClient sets it to the constant Patience.
	Patience time.Duration
	tb       testing.TB
}

// NewClient returns a client that uses conn, which is closed at the end of the test.
func NewClient(tb testing.TB, conn net.Conn) *Client {
	tb.Cleanup(func() { _ = conn.Close() })
	return &Client{Conn: conn, R: bufio.NewReader(conn), Patience: Patience, tb: tb}
}

// Dial connects a client to a socket of this machine. The connection is closed at the end of the
// test.
func Dial(tb testing.TB, network, address string) *Client {
	tb.Helper()
	conn, err := net.Dial(network, address)
	require.NoError(tb, err)
	return NewClient(tb, conn)
}

// Send sends raw without any change. It does not read a reply.
func (c *Client) Send(raw string) {
	c.tb.Helper()
	require.NoError(c.tb, c.SetWriteDeadline(time.Now().Add(c.Patience)))
	_, err := io.WriteString(c.Conn, raw)
	require.NoError(c.tb, err)
}

// Command sends a command. It does not read the reply.
func (c *Client) Command(args ...string) {
	c.tb.Helper()
	c.Send(string(Encode(nil, args...)))
}

// Do sends a command and returns the bytes of its reply.
func (c *Client) Do(args ...string) string {
	c.tb.Helper()
	c.Command(args...)
	return c.Reply()
}

// Reply returns the bytes of the next reply. It waits for the reply, for c.Patience at most.
func (c *Client) Reply() string {
	c.tb.Helper()
	require.NoError(c.tb, c.SetReadDeadline(time.Now().Add(c.Patience)))
	text, err := ReadReply(c.R)
	require.NoError(c.tb, err, "after %q", text)
	return text
}

// Expect reads one reply for each element of want, and requires the bytes to be equal.
func (c *Client) Expect(want ...string) {
	c.tb.Helper()
	for i, w := range want {
		require.Equal(c.tb, w, c.Reply(), "reply %d", i)
	}
}

// Silent requires that no byte has arrived, and that none would arrive if no time passed. It works
// only in a [Bubble], and does not let time pass.
func (c *Client) Silent() {
	c.tb.Helper()
	synctest.Wait()
	if c.R.Buffered() > 0 || !c.Conn.(*simnet.Conn).Idle() {
		require.NoError(c.tb, c.SetReadDeadline(time.Time{}))
		next, err := c.R.Peek(1)
		require.Fail(c.tb, "the client is not left alone", "%q, %v", next, err)
	}
}

// ExpectEnd requires that the server closes the connection without sending another byte.
func (c *Client) ExpectEnd() {
	c.tb.Helper()
	require.NoError(c.tb, c.SetReadDeadline(time.Now().Add(c.Patience)))
	rest, err := io.ReadAll(c.R)
	require.NotErrorIs(c.tb, err, os.ErrDeadlineExceeded, "the connection is still open")
	require.Empty(c.tb, string(rest))
}

// Info returns the value of field in the reply of INFO. It fails the test if INFO does not have the
// field.
func (c *Client) Info(field string) string {
	c.tb.Helper()
	for line := range strings.SplitSeq(c.Do("INFO", "everything"), "\r\n") {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return value
		}
	}
	require.FailNow(c.tb, "INFO has no field "+field)
	return ""
}

// ID returns the ID of the client, as CLIENT ID replies it.
func (c *Client) ID() string {
	c.tb.Helper()
	return strings.Trim(c.Do("CLIENT", "ID"), ":\r\n")
}

// ReadReply reads one reply of RESP2 or RESP3, with nested replies, and returns its bytes.
func ReadReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	if !strings.HasSuffix(line, "\r\n") || len(line) < 3 {
		return line, fmt.Errorf("bad line %q", line)
	}
	n, _ := strconv.Atoi(line[1 : len(line)-2])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return line + string(body), err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return line, nil
	}
	text := strings.Builder{}
	text.WriteString(line)
	for range n {
		one, err := ReadReply(r)
		text.WriteString(one)
		if err != nil {
			return text.String(), err
		}
	}
	return text.String(), nil
}

// Bulk returns s encoded as a bulk string.
func Bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// Array returns an encoded array of replies, which are encoded already.
func Array(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}

// Five returns the encoded five integers of a limiter's reply.
func Five(limited, limit, remaining, retry, reset int64) string {
	return fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", limited, limit, remaining, retry, reset)
}

// Silent calls [Client.Silent] for each of conns.
func Silent(conns ...*Client) {
	for _, c := range conns {
		c.Silent()
	}
}

// Say sends a command, given as words in one string, and returns the bytes of its reply.
func (c *Client) Say(words string) string {
	c.tb.Helper()
	return c.Do(strings.Fields(words)...)
}

// Set requires the reply to each of commands, given as words in a string, to be [OK].
func (c *Client) Set(commands ...string) {
	c.tb.Helper()
	for _, words := range commands {
		require.Equal(c.tb, OK, c.Say(words), words)
	}
}

// As makes admin create the user "app" with the given rules, and authenticates c as that user. It
// returns c.
func (c *Client) As(admin *Client, rules ...string) *Client {
	c.tb.Helper()
	require.Equal(c.tb, OK, admin.Do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(c.tb, OK, c.Do("AUTH", "app", "p"))
	return c
}

// Field returns the value of the field called name in a line of CLIENT LIST, or "". It does not
// find the first field of the line.
func Field(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}
