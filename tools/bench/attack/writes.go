package attack

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// writes returns the attack by large arguments.
func writes() []Attack {
	return []Attack{{
		Name:      "large-set",
		About:     "50 clients SET values of 100 kB to 16 MB while proto-max-bulk-len is 8 MB, and go on with the connection",
		maxMemory: [2]int{64, 256},
		options:   []string{"--proto-max-bulk-len", "8mb", "--client-query-buffer-limit", "64mb"},
		run:       largeSets,
	}}
}

func largeSets(ctx context.Context, s *scene) error {
	const limit = 8 << 20
	sizes := []int{100_000, 900_000, 1 << 20, 1<<20 + 1, limit / 2, limit - 100, limit, limit + 1, 2 * limit}
	values := make([]string, len(sizes))
	for i, size := range sizes {
		values[i] = large(size, i)
	}
	steady, cancel := s.during(ctx)
	defer cancel()
	s.crowd(ctx, s.pick(16, 50), func(ctx context.Context, i int, c *client) {
		random := s.random(i)
		for n := 0; steady.Err() == nil; n++ {
			if s.set(ctx, &c, "set:"+strconv.Itoa(i), values[random.IntN(len(values))]) != nil {
				return
			}
		}
		c.close()
	})
	return nil
}

// set sends SET and then PING on the same connection. If the server closes the connection because
// of the value, that counts as closed, and set connects again.
func (s *scene) set(ctx context.Context, c **client, key, value string) error {
	r, err := (*c).do("SET", key, value)
	if err == nil {
		s.count(&r)
		var pong reply
		if pong, err = (*c).do("PING"); err == nil {
			s.count(&pong)
		}
	}
	s.judge(ctx, &r, err)
	if err == nil || ctx.Err() != nil {
		return err
	}
	(*c).close()
	again, err := dial(ctx, s.server.address)
	if err == nil {
		*c = again
	}
	return err
}

// logs returns the attack that makes the server write its log.
func logs() []Attack {
	return []Attack{{
		Name:      "log-flood",
		About:     "8 clients connect again and again and send HTTP requests, bytes that are no RESP, and wrong passwords",
		maxMemory: [2]int{64, 64},
		run:       logFlood,
	}}
}

func logFlood(ctx context.Context, s *scene) error {
	lines := [...]string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nPING",
		"*1\r\n!4\r\nPING\r\n",
		"*3\r\n$-9\r\n",
		"AUTH nobody wrong\r\n",
	}
	steady, cancel := s.during(ctx)
	defer cancel()
	before := s.server.logLines()
	var made atomic.Int64
	s.crowd(ctx, 8, func(ctx context.Context, i int, _ *client) {
		for n := i; steady.Err() == nil; n++ {
			s.knock(ctx, lines[n%len(lines)])
			made.Add(1)
		}
	})
	s.note("%d log lines from %d connections", s.server.logLines()-before, made.Load())
	return nil
}

// knock connects, sends a line and disconnects after the reply, or after 50 ms.
func (s *scene) knock(ctx context.Context, line string) {
	c, err := dial(ctx, s.server.address)
	if err != nil {
		return
	}
	defer c.close()
	c.out = append(c.out, line...)
	if c.flush() != nil {
		return
	}
	// The server may delay the reply to a wrong password to slow down guessing.
	_ = c.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // fails only together with the connection
	if n, _ := c.conn.Read(make([]byte, 512)); n > 0 {
		s.tally.replies.Add(1)
	}
}
