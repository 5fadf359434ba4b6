package script

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Target is a server against which scripts are run. Dial opens a connection to it.
type Target struct {
	Dial func() (net.Conn, error)
	// Clock is the clock of the server. It is nil for a server in real time.
	Clock Clock
	// Settle waits until the server has done everything that needs no time to pass. It is called
	// before Clock moves. It is nil for a server outside a bubble, where only the number of timers
	// tells what the server has done.
	Settle func()
	// Put creates a key of the kind "string" or "list" with a value. The key expires after ttl; if
	// ttl is 0, it never does. Put is nil if keys cannot be created in this way.
	Put func(kind, key, value string, ttl time.Duration) error
}

// Clock is a clock that only a script moves.
type Clock interface {
	Advance(d time.Duration)
	Set(i limit.Instant)
	Timers() int
}

// Difference is a reply that does not match the expected one.
type Difference struct {
	Line int
	// Command is the text of the last command on the connection.
	Command string
	What    string
}

// Report returns the text of a message about d, a difference in a section of s, with its location.
func (s *Script) Report(d Difference) string {
	const most = 3000 // maximum length of a reply in the text, so that a very long reply does not hide others
	if len(d.What) > most {
		d.What = d.What[:most] + " ..."
	}
	return fmt.Sprintf("%s:%d: %s\n%s", s.File, d.Line, d.Command, d.What)
}

// Result is the result of running a section.
type Result struct {
	Differences []Difference
	// Answered has the texts of the commands whose replies were compared.
	Answered []string
	// LeftOut is the reason why the steps from some line on were not run, or "" if all were run.
	LeftOut string
}

const (
	// replyTimeout is the maximum time to wait for a reply. It is long enough for a busy machine.
	replyTimeout = time.Minute
	// longestWait is the maximum time for which a step sleeps with a server in real time.
	longestWait = 1100 * time.Millisecond
)

// Run runs the section s in the protocol version proto. It continues after a reply that differs,
// and reports that in the result. If the target cannot execute a step, Run ends without an error,
// and the result says why. It ends at any other failure, and returns that as an error.
func Run(s *Section, proto int, t Target) (Result, error) {
	r := runner{target: t, proto: proto, conns: map[string]*conn{}, bound: map[string]string{}}
	defer r.close()
	for i := range s.Steps {
		step := &s.Steps[i]
		if err := r.step(step); err != nil {
			var left leftOut
			if errors.As(err, &left) {
				r.result.LeftOut = fmt.Sprintf("line %d: %s", step.Line, left)
				return r.result, nil
			}
			return r.result, fmt.Errorf("line %d: %w", step.Line, err)
		}
	}
	return r.result, r.finish()
}

// leftOut is an error: the reason why the rest of a section cannot be run against this target.
type leftOut string

func (l leftOut) Error() string { return string(l) }

type runner struct {
	target Target
	proto  int
	conns  map[string]*conn
	bound  map[string]string
	result Result
}

// conn is one connection of a section.
type conn struct {
	net.Conn
	in     *bufio.Reader
	proto  int
	last   string // text of the last command on the connection
	hello  int    // the protocol that the running HELLO or RESET requests, or otherwise the protocol of the connection
	closed bool
}

func (r *runner) close() {
	for _, c := range r.conns {
		_ = c.Close() // the server may have closed the connection already
	}
}

func (r *runner) step(s *Step) error {
	text, err := expand(s.Text, func(name string) (string, bool) {
		v, ok := r.bound[name]
		return v, ok
	})
	if err != nil {
		return err
	}
	if s.Kind == Directive {
		return r.direct(text)
	}
	c, err := r.conn(s.Conn)
	if err != nil {
		return err
	}
	if s.Proto != 0 && s.Proto != c.proto {
		return nil
	}
	switch s.Kind {
	case Send:
		words, err := splitWords(text)
		if err != nil {
			return err
		}
		c.last, c.hello = s.Text, protocolOf(words, c.proto)
		return c.send(encode(words))
	case SendRaw:
		words, err := splitWords(text)
		if err != nil {
			return err
		}
		c.last = s.Text
		return c.send([]byte(words[0]))
	default:
		return r.expect(c, s, text)
	}
}

// conn returns the connection called name. If there is none, it opens one, in the protocol of the
// section.
func (r *runner) conn(name string) (*conn, error) {
	if c := r.conns[name]; c != nil {
		return c, nil
	}
	nc, err := r.target.Dial()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, in: bufio.NewReader(nc), proto: 2}
	r.conns[name] = c
	if r.proto == 3 {
		if err := c.send(encode([]string{"HELLO", "3"})); err != nil {
			return nil, err
		}
		v, err := c.read()
		if err != nil {
			return nil, fmt.Errorf("reading the reply to HELLO 3: %w", err)
		}
		if v.Type != '%' {
			return nil, fmt.Errorf("HELLO 3 was answered with %v", v)
		}
		c.proto = 3
	}
	return c, nil
}

// protocolOf returns the protocol version, 2 or 3, of a connection after the command in words has
// succeeded. now is the version before it.
func protocolOf(words []string, now int) int {
	switch name := strings.ToLower(words[0]); {
	case name == "reset" && len(words) == 1:
		return 2
	case name == "hello" && len(words) > 1 && (words[1] == "2" || words[1] == "3"):
		return int(words[1][0] - '0')
	}
	return now
}

func encode(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

func (c *conn) send(b []byte) error {
	if err := c.SetDeadline(deadline()); err != nil {
		return err
	}
	_, err := c.Write(b)
	if err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}

func (c *conn) read() (Value, error) {
	if err := c.SetDeadline(deadline()); err != nil {
		return Value{}, err
	}
	return ReadValue(c.in)
}

func deadline() time.Time { return time.Now().Add(replyTimeout) }

// expect reads one reply and compares it with the pattern in text. It adds a difference to the
// result, and returns an error only if the pattern is malformed or no reply can be read.
func (r *runner) expect(c *conn, s *Step, text string) error {
	want, err := parsePattern(text)
	if err != nil {
		return err
	}
	v, err := c.read()
	if want.kind == wantClosed {
		if err == nil {
			r.differ(c, s, "got "+v.String())
		} else if isTimeout(err) {
			r.differ(c, s, "the connection stays open")
		}
		c.closed = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the reply to %s: %w", c.last, err)
	}
	if c.hello != 0 && v.Type != '-' {
		c.proto = c.hello
	}
	c.hello = 0
	r.result.Answered = append(r.result.Answered, c.last)
	m := matcher{proto: c.proto, bound: r.bound}
	if !m.matches(&want, v) {
		r.differ(c, s, fmt.Sprintf("want %s\n got %s", s.Text, v))
	}
	return nil
}

func (r *runner) differ(c *conn, s *Step, what string) {
	r.result.Differences = append(r.result.Differences, Difference{s.Line, c.last, what})
}

// finish reports each reply that no step has expected as a difference. It returns an error if the
// server does not close a connection whose client has closed it.
func (r *runner) finish() error {
	for name, c := range r.conns {
		if c.closed {
			continue
		}
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			if err := half.CloseWrite(); err != nil {
				return fmt.Errorf("closing connection %q: %w", name, err)
			}
		}
		switch v, err := c.read(); {
		case err == nil:
			r.result.Differences = append(r.result.Differences, Difference{
				Command: c.last, What: fmt.Sprintf("connection %q: a reply too many: %s", name, v),
			})
		case isTimeout(err):
			return fmt.Errorf("connection %q: the server does not close what its client has closed", name)
		}
	}
	return nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// direct executes the directive in text. The error is a [leftOut] if the target cannot execute it.
func (r *runner) direct(text string) error {
	words, err := splitWords(text)
	if err != nil {
		return err
	}
	d, err := parseDirective(words)
	if err != nil {
		return err
	}
	switch d.word {
	case "string", "list":
		if r.target.Put == nil {
			return leftOut("keys of other types cannot be made there")
		}
		return r.target.Put(d.word, d.key, d.value, d.ttl)
	case "blocked":
		return r.untilBlocked(d.count)
	case "timers":
		return r.untilTimers(d.count)
	case "advance":
		return r.advance(d.ttl)
	}
	if r.target.Clock == nil {
		return leftOut("it needs a clock that can be set")
	}
	r.settle()
	r.target.Clock.Set(limit.Instant(d.instant))
	return nil
}

func (r *runner) settle() {
	if r.target.Settle != nil {
		r.target.Settle()
	}
}

func (r *runner) advance(d time.Duration) error {
	switch {
	case r.target.Clock != nil:
		r.settle()
		r.target.Clock.Advance(d)
	case d <= longestWait:
		time.Sleep(d) // the server runs in real time, so this step does, too
	default:
		return leftOut("it would have to wait " + d.String())
	}
	return nil
}

// untilBlocked waits until INFO shows that n clients are blocked.
func (r *runner) untilBlocked(n int) error {
	control, err := r.target.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	c := &conn{Conn: control, in: bufio.NewReader(control)}
	wanted := "\nblocked_clients:" + strconv.Itoa(n) + "\r"
	return until(fmt.Sprintf("%d clients blocked", n), func() (bool, error) {
		if err := c.send(encode([]string{"INFO", "clients"})); err != nil {
			return false, err
		}
		v, err := c.read()
		return strings.Contains(v.Text, wanted), err
	})
}

// untilTimers waits until n timers are set. A script needs that before it moves the clock, because
// a command that sets its timer afterwards would wait forever. untilTimers does nothing if the
// target has no Clock, or if it has Settle, which sees to that with any number of timers: a server
// with a store has other ones.
func (r *runner) untilTimers(n int) error {
	if r.target.Clock == nil || r.target.Settle != nil {
		return nil
	}
	err := until(fmt.Sprintf("%d timers set", n), func() (bool, error) {
		return r.target.Clock.Timers() == n, nil
	})
	if err != nil {
		return fmt.Errorf("%w, but %d", err, r.target.Clock.Timers())
	}
	return nil
}

// until waits until condition returns true, but for at most replyTimeout. what describes the
// condition in the error.
func until(what string, condition func() (bool, error)) error {
	for began := time.Now(); time.Since(began) < replyTimeout; time.Sleep(time.Millisecond) {
		if ok, err := condition(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("there were not %s within %s", what, replyTimeout)
}
