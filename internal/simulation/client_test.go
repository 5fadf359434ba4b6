package simulation_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// patience is how long a client waits for a reply before it considers it lost.
const patience = 4 * time.Second

// line is a connection to a server. Any error ends it.
type line struct {
	conn net.Conn
	r    *bufio.Reader
}

// dial connects a host to a node.
func (s *Sim) dial(host string, n *inproc.Node) (*line, error) {
	ctx, cancel := s.withTimeout(time.Second)
	defer cancel()
	conn, err := s.w.Net.Dial(ctx, host, n.Addr())
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

// ask sends commands in one write and returns their replies.
func (l *line) ask(within time.Duration, commands ...[]string) (replies []string, err error) {
	var raw []byte
	for _, c := range commands {
		raw = inproc.Encode(raw, c...)
	}
	if err := l.conn.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if _, err := l.conn.Write(raw); err != nil {
		return nil, err
	}
	for range commands {
		reply, err := inproc.ReadReply(l.r)
		if err != nil {
			return replies, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func (l *line) close() {
	if l != nil {
		_ = l.conn.Close() // it is no longer used
	}
}

// do sends a command to a node from the node's own host. The reply is empty if there is none.
func (s *Sim) do(n *inproc.Node, args ...string) string {
	l, err := s.dial(n.Host, n)
	if err != nil {
		return ""
	}
	defer l.close()
	replies, err := l.ask(patience, args)
	if err != nil {
		return ""
	}
	return replies[0]
}

// integers returns all integers of a reply, including nested ones.
func integers(reply string) (all []int64) {
	for text := range strings.SplitSeq(reply, "\r\n") {
		if rest, ok := strings.CutPrefix(text, ":"); ok {
			if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// refused reports whether an error says that the call had no effect.
func refused(reply string) bool {
	for _, prefix := range []string{"-READONLY", "-LOADING", "-MASTERDOWN", "-EXECABORT", "-NOREPLICAS Not enough good"} {
		if strings.HasPrefix(reply, prefix) {
			return true
		}
	}
	return false
}

// client is a client of the cluster.
type client struct {
	s    *Sim
	id   int
	host string
	rng  *rand.Rand
	at   int // the node that it calls
	line *line
	tags int
	held []*hold
}

// run calls until stop is closed.
func (c *client) run(stop <-chan struct{}) {
	defer func() { c.line.close() }()
	for {
		select {
		case <-stop:
			return
		case <-time.After(1 + time.Duration(c.rng.Int64N(int64(c.s.plan.Think)))):
		}
		if c.line == nil {
			if !c.connect() {
				continue
			}
		}
		c.s.calls.Add(1)
		if !c.call() {
			c.line.close()
			c.line = nil
		}
	}
}

// connect opens a connection to the primary that the client knows, or sometimes to a random node.
func (c *client) connect() bool {
	if c.rng.IntN(8) > 0 {
		c.at = int(c.s.primary.Load())
	} else {
		c.at = c.rng.IntN(len(c.s.nodes))
	}
	var err error
	c.line, err = c.s.dial(c.host, c.s.nodes[c.at])
	return err == nil
}

// call makes one call, and reports whether the connection can still be used.
func (c *client) call() bool {
	switch n := c.rng.IntN(20); {
	case n < 12:
		if p := c.s.parts.pick(c.rng); p != nil && p.take() {
			return c.recorded(p)
		}
		return c.limited()
	case n < 16:
		return c.limited()
	case n < 18:
		return c.queued()
	default:
		return c.other()
	}
}

// exchange sends commands, sometimes with ECHO around them, and returns the last reply. It is empty
// if there was none.
func (c *client) exchange(commands ...[]string) string {
	tagged := c.rng.IntN(2) == 0
	sent := commands
	if tagged {
		c.tags++
		tag := func(which string) []string {
			return []string{"ECHO", fmt.Sprintf("%s-%d-%d", which, c.id, c.tags)}
		}
		sent = append(append([][]string{tag("before")}, commands...), tag("after"))
	}
	replies, err := c.line.ask(patience, sent...)
	if tagged {
		for _, at := range []int{0, len(sent) - 1} {
			if at < len(replies) && replies[at] != inproc.Bulk(sent[at][1]) && !strings.HasPrefix(replies[at], "-") {
				c.s.fail("order", "client %d sent %q and got %q", c.id, sent, replies)
			}
		}
		if len(replies) < len(sent)-1 {
			return ""
		}
		return replies[len(sent)-2]
	}
	if err != nil {
		return ""
	}
	return replies[len(replies)-1]
}

// settle classifies a reply: known says that it has a result, none that the call had no effect, and
// useful that the connection can still be used.
func (c *client) settle(reply string) (known, none, useful bool) {
	switch {
	case reply == "":
		return false, false, false
	case refused(reply):
		return false, true, false
	case reply[0] == '-' || reply == "*-1\r\n" || reply == "$-1\r\n":
		return false, false, c.rng.IntN(2) == 0
	}
	return true, false, true
}

// limited calls a key with a rate, whose bound is checked at the end.
func (c *client) limited() bool {
	r := c.s.rates.pick(c.rng)
	n := 1 + c.rng.Int64N(3)
	call := time.Now()
	reply := c.exchange(r.command(n, c.rng.IntN(10) == 0))
	known, _, useful := c.settle(reply)
	if got := integers(reply); known && len(got) >= 5 && got[0] == 0 {
		r.note(admission{n, call, time.Now()})
	}
	return useful
}

// queued pushes to a list, or pops from it and perhaps waits.
func (c *client) queued() bool {
	q := c.s.queue.Load()
	if c.rng.IntN(2) == 0 {
		c.tags++
		element := fmt.Sprintf("e-%d-%d", c.id, c.tags)
		q.pushes(element)
		reply := c.exchange([]string{"RPUSH", q.key, element})
		known, none, useful := c.settle(reply)
		q.pushed(element, known, none)
		return useful
	}
	reply := c.exchange([]string{"BLPOP", q.key, []string{"0.05", "0.5", "1"}[c.rng.IntN(3)]})
	element, popped := "", strings.HasPrefix(reply, "*2\r\n")
	if popped {
		words := strings.Split(reply, "\r\n")
		element = words[4]
	}
	nothing := reply == "*-1\r\n" || refused(reply)
	if text := q.popped(element, popped, nothing); text != "" {
		c.s.fail("queue", "client %d: %s", c.id, text)
	}
	return popped || nothing && !refused(reply)
}

// other makes calls whose results are not checked: keys that expire, policies, and reads.
func (c *client) other() bool {
	key := fmt.Sprintf("other:%d", c.rng.IntN(20))
	var command []string
	switch c.rng.IntN(14) {
	case 0:
		command = []string{"SET", key, strconv.Itoa(c.tags), "PX", strconv.Itoa(50 + c.rng.IntN(3000))}
	case 1:
		command = []string{"SET", key, strings.Repeat("x", c.rng.IntN(4000)), "EX", "100"}
	case 2:
		command = []string{"PEXPIRE", key, strconv.Itoa(100 + c.rng.IntN(20000))}
	case 3:
		command = []string{"DEL", key}
	case 4:
		command = []string{"RL.OVERRIDE", "SET", "use", fmt.Sprintf("o%d", c.rng.IntN(5)), "EX", strconv.Itoa(1 + c.rng.IntN(50)), "LIMITS", "SW", "12", years, "FIXED"}
	case 5:
		command = []string{"RL.BLOCK", "use", fmt.Sprintf("b%d", c.rng.IntN(5)), "EX", strconv.Itoa(1 + c.rng.IntN(50)), "REASON", "none"}
	case 6:
		command = []string{"RL.UNBLOCK", "use", fmt.Sprintf("b%d", c.rng.IntN(5))}
	case 7:
		command = []string{"SW.ALLOW", "log:" + key, "20", "10", "LOG"}
	case 8:
		command = []string{"HSET", "hash:" + key, fmt.Sprintf("f%d", c.rng.IntN(10)), strconv.Itoa(c.tags)}
	case 9:
		command = []string{"TB.ACQUIRE", "wait:" + key, "4", "2", "1", "3", "BLOCK", "1"}
		if c.rng.IntN(2) == 0 {
			command = []string{"TB.ACQUIRE", "wait:" + key, "4", "2", "1", "1", "BLOCK", "1", "KEEP", strconv.Itoa(1 + c.rng.IntN(3))}
		}
	case 10:
		command = []string{"GET", key}
	case 12:
		command = []string{"RL.USE", "harsh", fmt.Sprintf("h%d", c.rng.IntN(3)), "2"}
	case 11:
		command = []string{"RL.OVERRIDE", "SET", "use", fmt.Sprintf("f%d", c.rng.IntN(5)), "LIMITS", "SW", strconv.Itoa(20 + c.rng.IntN(9)), years, "FIXED"}
	default:
		command = []string{"ZINCRBY", "set:" + key, "1", fmt.Sprintf("m%d", c.rng.IntN(10))}
	}
	_, _, useful := c.settle(c.exchange(command))
	return useful
}
