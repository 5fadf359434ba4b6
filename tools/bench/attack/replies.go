package attack

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// megabyte is the size of one large value. It is below 1 MiB, the smallest value of Redis'
// proto-max-bulk-len.
const megabyte = 1_000_000

// rounds returns the number of requests that each reader sends.
func (s *scene) rounds() int { return s.pick(1, 3) }

// largeReplies returns the attacks with replies that consist of values of 1 MB, 60 of them at full
// size.
func largeReplies() []Attack {
	base := Attack{maxMemory: [2]int{32, 256}}
	variant := func(name, about string, fill, run func(context.Context, *scene) error) Attack {
		a := base
		a.Name, a.About, a.fill, a.run = name, about, fill, run
		return a
	}
	return []Attack{
		variant("large-lrange", "20 clients read LRANGE of a list of 60 MB at once", fillList, func(ctx context.Context, s *scene) error {
			s.readers(ctx, 20, "LRANGE", "list", "0", "-1")
			return nil
		}),
		variant("unread-lrange", "100 clients ask for LRANGE of a list of 60 MB and read nothing, while 4 read it", fillList, unreadLRange),
		variant("large-mget", "20 clients read MGET of 60 values of 1 MB at once", fillValues, func(ctx context.Context, s *scene) error {
			s.readers(ctx, 20, append([]string{"MGET"}, s.values()...)...)
			return nil
		}),
		variant("large-exec", "20 clients read the EXEC of 60 GETs of 1 MB at once", fillValues, largeExec),
		variant("large-script", "20 clients read a script's reply of 60 MB at once", fillValues, func(ctx context.Context, s *scene) error {
			const script = "local r = {} for i, key in ipairs(KEYS) do r[i] = redis.call('GET', key) end return r"
			keys := s.values()
			s.readers(ctx, 20, append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)...)
			return nil
		}),
	}
}

// readers runs n clients that send a command at once, in several rounds, and read the replies.
func (s *scene) readers(ctx context.Context, n int, words ...string) {
	s.crowd(ctx, n, func(ctx context.Context, _ int, c *client) {
		for range s.rounds() {
			if s.ask(ctx, c, words...) != nil {
				return
			}
		}
	})
}

// elements returns the number of large values.
func (s *scene) elements() int { return s.pick(12, 60) }

// values returns the keys of the large values.
func (s *scene) values() []string {
	keys := make([]string, s.elements())
	for i := range keys {
		keys[i] = "value:" + strconv.Itoa(i)
	}
	return keys
}

// large returns a value of n bytes. Its first byte depends on i, so that values differ.
func large(n, i int) string { return string(rune('a'+i%26)) + strings.Repeat("x", n-1) }

func fillList(ctx context.Context, s *scene) error {
	return s.prepare(ctx, func(c *client) error {
		for i := range s.elements() {
			if _, err := c.must("RPUSH", "list", large(megabyte, i)); err != nil {
				return err
			}
		}
		return nil
	})
}

func fillValues(ctx context.Context, s *scene) error {
	return s.prepare(ctx, func(c *client) error {
		for i, key := range s.values() {
			if _, err := c.must("SET", key, large(megabyte, i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare runs do on a connection that it closes afterwards.
func (s *scene) prepare(ctx context.Context, do func(c *client) error) error {
	c, err := dial(ctx, s.server.address)
	if err != nil {
		return err
	}
	defer c.close()
	return do(c)
}

func unreadLRange(ctx context.Context, s *scene) error {
	command := appendCommand(nil, "LRANGE", "list", "0", "-1")
	s.beside(ctx, s.pick(50, 100), func(b []byte) []byte { return append(b, command...) }, func() {
		s.readers(ctx, 4, "LRANGE", "list", "0", "-1")
	})
	return nil
}

// beside runs do while n clients have sent a request and read nothing. It lasts at least as long as
// a continuous attack.
func (s *scene) beside(ctx context.Context, n int, say func(b []byte) []byte, do func()) {
	unread, enough := context.WithCancel(ctx)
	defer enough()
	steady, cancel := s.during(ctx)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() { s.mute(unread, n, say) })
	do()
	<-steady.Done()
	enough()
	wait.Wait()
}

func largeExec(ctx context.Context, s *scene) error {
	keys := s.values()
	s.crowd(ctx, 20, func(ctx context.Context, _ int, c *client) {
		for range s.rounds() {
			if s.transaction(ctx, c, keys) != nil {
				return
			}
		}
	})
	return nil
}

// transaction sends a GET of each key between MULTI and EXEC in one write, and reads the replies.
func (s *scene) transaction(ctx context.Context, c *client, keys []string) error {
	c.out = appendCommand(c.out, "MULTI")
	for _, key := range keys {
		c.out = appendCommand(c.out, "GET", key)
	}
	c.out = appendCommand(c.out, "EXEC")
	err := c.flush()
	var r reply
	for i := 0; err == nil && i < len(keys)+2; i++ {
		r, err = c.receive() // the last reply is the reply of EXEC
		s.count(&r)
	}
	s.judge(ctx, &r, err)
	return err
}

// manyReplies returns the attacks with replies that consist of very many elements, 100,000 of 600
// bytes each at full size.
func manyReplies() []Attack {
	variant := func(name, command string, add func(s *scene, at, n int) []string, read ...string) Attack {
		return Attack{
			Name:      name,
			About:     "20 clients read " + command + " of 100,000 elements of 600 bytes at once, and 100 ask for it and read nothing",
			maxMemory: [2]int{32, 256},
			fill: func(ctx context.Context, s *scene) error {
				return s.prepare(ctx, func(c *client) error { return fillMany(c, s, add) })
			},
			run: func(ctx context.Context, s *scene) error {
				words := append([]string{command, "many"}, read...)
				request := appendCommand(nil, words...)
				s.beside(ctx, s.pick(10, 100), func(b []byte) []byte { return append(b, request...) }, func() {
					s.readers(ctx, 20, words...)
				})
				return nil
			},
		}
	}
	return []Attack{
		variant("many-lrange", "LRANGE", func(_ *scene, at, n int) []string {
			return elements([]string{"RPUSH", "many"}, at, n, false)
		}, "0", "-1"),
		variant("many-smembers", "SMEMBERS", func(_ *scene, at, n int) []string {
			return elements([]string{"SADD", "many"}, at, n, false)
		}),
		variant("many-hgetall", "HGETALL", func(_ *scene, at, n int) []string {
			return elements([]string{"HSET", "many"}, at, n, true)
		}),
	}
}

// elements appends n elements of 600 bytes to a command. Their numbers begin with the parameter at.
// If fields is set, it appends a field before each element.
func elements(words []string, at, n int, fields bool) []string {
	const size = 600
	rest := strings.Repeat("x", size)
	for i := at; i < at+n; i++ {
		number := strconv.Itoa(i)
		if fields {
			words = append(words, number)
		}
		words = append(words, number+rest[len(number):])
	}
	return words
}

func fillMany(c *client, s *scene, add func(s *scene, at, n int) []string) error {
	const each = 500
	for at := 0; at < s.pick(20_000, 100_000); at += each {
		if _, err := c.must(add(s, at, each)...); err != nil {
			return err
		}
	}
	return nil
}

// gets returns the attacks by clients that read large values as fast as they can.
func gets() []Attack {
	variant := func(name string, size int) Attack {
		return Attack{
			Name:      name,
			About:     "50 clients read values of " + strconv.Itoa(size/1000) + " kB one after another",
			maxMemory: [2]int{64, 256},
			fill: func(ctx context.Context, s *scene) error {
				return s.prepare(ctx, func(c *client) error {
					for i := range 16 {
						if _, err := c.must("SET", "get:"+strconv.Itoa(i), large(size, i)); err != nil {
							return err
						}
					}
					return nil
				})
			},
			run: steadyGets,
		}
	}
	return []Attack{variant("large-gets-900k", 900_000), variant("large-gets-100k", 100_000)}
}

func steadyGets(ctx context.Context, s *scene) error {
	steady, cancel := s.during(ctx)
	defer cancel()
	begun := time.Now()
	s.crowd(ctx, 50, func(ctx context.Context, i int, c *client) {
		for n := i; steady.Err() == nil; n++ {
			if s.ask(ctx, c, "GET", "get:"+strconv.Itoa(n%16)) != nil {
				return
			}
		}
	})
	s.note("%.0f replies/s", float64(s.tally.replies.Load())/time.Since(begun).Seconds())
	return nil
}

// overwrites returns the attack on a server that keeps an overwritten value in memory as long as a
// reply refers to it.
func overwrites() []Attack {
	return []Attack{{
		Name:      "overwritten-while-read",
		About:     "100 clients take their MGET of 20 values of 1 MB slowly, while 8 others overwrite the values again and again",
		maxMemory: [2]int{32, 256},
		fill:      fillValues,
		run: func(ctx context.Context, s *scene) error {
			steady, cancel := s.during(ctx)
			defer cancel()
			keys := s.values()
			keys = keys[:min(20, len(keys))]
			var wait sync.WaitGroup
			wait.Go(func() {
				s.crowd(ctx, s.pick(50, 100), func(_ context.Context, _ int, c *client) { s.sip(steady, c, append([]string{"MGET"}, keys...)) })
			})
			s.crowd(ctx, 8, func(ctx context.Context, i int, c *client) {
				for n := 0; steady.Err() == nil; n++ {
					if s.ask(ctx, c, "SET", keys[(i+n)%len(keys)], large(megabyte, n)) != nil {
						return
					}
				}
			})
			wait.Wait()
			s.note("%d slow readers cut off", s.tally.sippers.Load())
			return nil
		},
	}}
}

// sip sends a command again and again and reads the replies in small portions, about a megabyte a
// second, until ctx ends. It counts a disconnection but does not treat it as a fault: this client
// reads, but holds memory at the expense of all others.
func (s *scene) sip(ctx context.Context, c *client, words []string) {
	portion := make([]byte, 64<<10)
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		if n%200 == 0 { // 200 portions are less than a reply at full size
			if err := c.send(words...); err != nil {
				s.tally.sippers.Add(1)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // fails only together with the connection
		got, err := c.conn.Read(portion)
		s.tally.bytes.Add(int64(got))
		var timeout interface{ Timeout() bool }
		if err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
			s.tally.sippers.Add(1)
			return
		}
	}
}
