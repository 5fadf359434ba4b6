package attack

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// act is one action of a client of the mix. An error means that the connection is no longer usable.
type act func(ctx context.Context, s *scene, c *client, r *rand.Rand) error

// mixes returns the attack that mixes the actions of the others.
func mixes() []Attack {
	return []Attack{{
		Name:      "mix",
		About:     "40 clients do at random what the other attacks do, by a seed",
		maxMemory: [2]int{64, 256},
		fill: func(ctx context.Context, s *scene) error {
			if err := fillValues(ctx, s); err != nil {
				return err
			}
			return s.prepare(ctx, func(c *client) error {
				for at := 0; at < s.pick(5_000, 50_000); at += 500 {
					for _, words := range [][]string{
						elements([]string{"RPUSH", "many:list"}, at, 500, false),
						elements([]string{"HSET", "many:hash"}, at, 500, true),
					} {
						if _, err := c.must(words...); err != nil {
							return err
						}
					}
				}
				return nil
			})
		},
		run: mix,
	}}
}

func mix(ctx context.Context, s *scene) error {
	acts := mixActs(s)
	steady, cancel := context.WithTimeout(ctx, 3*s.span())
	defer cancel()
	s.crowd(ctx, s.pick(16, 40), func(ctx context.Context, i int, first *client) {
		r := s.random(i)
		c := first
		for steady.Err() == nil {
			if c == nil {
				var err error
				if c, err = dial(ctx, s.server.address); err != nil {
					s.judge(ctx, nil, err)
					return
				}
			}
			if acts[r.IntN(len(acts))](ctx, s, c, r) != nil {
				c.close()
				c = nil
			}
		}
		if c != nil {
			c.close()
		}
	})
	return nil
}

// mixActs returns the actions from which the clients of the mix choose.
func mixActs(s *scene) []act {
	good := func(words func(r *rand.Rand) []string) act {
		return func(ctx context.Context, s *scene, c *client, r *rand.Rand) error { return s.ask(ctx, c, words(r)...) }
	}
	always := func(words ...string) act { return good(func(*rand.Rand) []string { return words }) }
	keys := s.values()
	script := append([]string{"EVAL", "local r = {} for i, key in ipairs(KEYS) do r[i] = redis.call('GET', key) end return r", "5"}, keys[:5]...)
	acts := []act{
		always(append([]string{"MGET"}, keys...)...),
		always("LRANGE", "many:list", "0", "-1"),
		always("HGETALL", "many:hash"),
		always(script...),
		good(func(r *rand.Rand) []string { return []string{"GET", keys[r.IntN(len(keys))]} }),
		good(func(r *rand.Rand) []string {
			return []string{"SET", keys[r.IntN(len(keys))], large(1+r.IntN(megabyte), r.IntN(26))}
		}),
		good(func(r *rand.Rand) []string {
			set := []string{"MSET"}
			for _, key := range names("mix:"+strconv.Itoa(r.IntN(100))+":", 1000) {
				set = append(set, key, "x")
			}
			return set
		}),
		func(ctx context.Context, s *scene, c *client, _ *rand.Rand) error { return s.transaction(ctx, c, keys) },
		unread(appendCommand(nil, append([]string{"MGET"}, keys...)...)),
		unread([]byte(strings.Repeat("LRANGE many:list 0 -1\r\n", 5))),
		unread([]byte("GET / HTTP/1.1\r\n\r\n")),
		unread([]byte("*2\r\n$3\r\nGET\r\n$1000000\r\nunfinished")),
	}
	if s.server.cell {
		acts = append(acts,
			good(func(r *rand.Rand) []string { return multi(r.IntN(100), 2000) }),
			func(ctx context.Context, s *scene, c *client, _ *rand.Rand) error {
				r, err := c.do("EVAL", "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 16000000) end return #t", "0")
				if err == nil {
					s.count(&r)
				}
				return err
			})
	}
	return acts
}

// unread returns an act that sends request, reads nothing for up to half a second, and then returns
// an error, so that the connection is closed.
func unread(request []byte) act {
	return func(ctx context.Context, _ *scene, c *client, r *rand.Rand) error {
		c.out = append(c.out, request...)
		if err := c.flush(); err != nil {
			return err
		}
		wait := time.NewTimer(time.Duration(r.IntN(500)) * time.Millisecond)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		return context.Canceled // the connection cannot be used after that
	}
}
