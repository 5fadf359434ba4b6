// Command goredis tests the functions of go-redis with which limiters are built. These are
// Script.Run, TxPipelined, Watch, and publish and subscribe.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

var client = checks.Client()

// window is the script of a fixed window that many articles show.
var window = redis.NewScript(`
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end
return {1, -1}`)

func script(c *redis.Client, key string, limit int, period time.Duration) func() (bool, error) {
	return func() (bool, error) {
		got, err := window.Run(checks.Ctx, c, []string{key}, limit, period.Milliseconds()).Int64Slice()
		return err == nil && got[0] == 1, err
	}
}

func main() {
	checks.Run("github.com/redis/go-redis/v9",
		checks.Check{Name: "script-run", Run: func() error { return checks.Admits(20, 30, script(client, "run", 20, time.Hour)) }},
		checks.Check{Name: "script-at-once", Run: func() error {
			return checks.Parallel(50, 16, 200, script(client, "once", 50, time.Hour), script(checks.Client(), "once", 50, time.Hour))
		}},
		checks.Check{Name: "script-reopens", Run: func() error {
			s := script(client, "reopens", 2, time.Second)
			return errors.Join(checks.Admits(2, 2, s), checks.Reopens(s))
		}},
		checks.Check{Name: "noscript", Run: noScript},
		checks.Check{Name: "script-error", Run: func() error {
			err := redis.NewScript(`return redis.error_reply('MYERR no')`).Run(checks.Ctx, client, nil).Err()
			return checks.Refused(err, "MYERR no")
		}},
		checks.Check{Name: "tx-pipelined", Run: func() error { return checks.Parallel(30, 8, 100, transaction) }},
		checks.Check{Name: "watch", Run: watch},
		checks.Check{Name: "sorted-set-log", Run: func() error { return checks.Parallel(30, 8, 60, sortedSet) }},
		checks.Check{Name: "pub-sub", Run: pubSub},
		checks.Check{Name: "pattern", Run: pattern},
	)
}

func noScript() error {
	if err := client.ScriptFlush(checks.Ctx).Err(); err != nil {
		return err
	}
	err := window.EvalSha(checks.Ctx, client, []string{"noscript"}, 1, 1000).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return fmt.Errorf("got %v, want NOSCRIPT", err)
	}
	if err := checks.Admits(2, 3, script(client, "noscript", 2, time.Hour)); err != nil {
		return err
	}
	known, err := window.Exists(checks.Ctx, client).Result()
	return errors.Join(err, checks.Expect(known, []bool{true}))
}

// transaction sends INCR and EXPIRE between MULTI and EXEC, and reports whether the counter is at
// most 30.
func transaction() (bool, error) {
	var n *redis.IntCmd
	_, err := client.TxPipelined(checks.Ctx, func(p redis.Pipeliner) error {
		n = p.Incr(checks.Ctx, "tx")
		p.ExpireNX(checks.Ctx, "tx", time.Hour)
		return nil
	})
	return err == nil && n.Val() <= 30, err
}

// watch requires that a transaction fails if another client has written the watched key before
// EXEC.
func watch() error {
	other := checks.Client()
	err := client.Watch(checks.Ctx, func(tx *redis.Tx) error {
		if err := other.Incr(checks.Ctx, "watch").Err(); err != nil {
			return err
		}
		_, err := tx.TxPipelined(checks.Ctx, func(p redis.Pipeliner) error {
			return p.Set(checks.Ctx, "watch", 10, 0).Err()
		})
		return err
	}, "watch")
	if !errors.Is(err, redis.TxFailedErr) {
		return fmt.Errorf("got %v, want %v", err, redis.TxFailedErr)
	}
	value, err := client.Get(checks.Ctx, "watch").Result()
	return errors.Join(err, checks.Expect(value, "1"))
}

var log = redis.NewScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

func sortedSet() (bool, error) {
	now := time.Now()
	got, err := log.Run(checks.Ctx, client, []string{"zset"}, now.UnixMilli(), 3600000, 30, fmt.Sprint(now.UnixNano(), &now)).Int()
	return got == 1, err
}

// receive waits for one message, for at most 20 s.
func receive(s *redis.PubSub) (*redis.Message, error) {
	ctx, cancel := context.WithTimeout(checks.Ctx, 20*time.Second)
	defer cancel()
	return s.ReceiveMessage(ctx)
}

func pubSub() error {
	s := client.Subscribe(checks.Ctx, "news")
	defer s.Close()
	if _, err := s.Receive(checks.Ctx); err != nil {
		return err
	}
	if err := s.Ping(checks.Ctx); err != nil {
		return err
	}
	heard, err := checks.Client().Publish(checks.Ctx, "news", "hello").Result()
	if err := errors.Join(err, checks.Expect(heard, int64(1))); err != nil {
		return err
	}
	message, err := receive(s)
	if err != nil {
		return err
	}
	return checks.Expect(message.Channel+" "+message.Payload, "news hello")
}

func pattern() error {
	s := client.PSubscribe(checks.Ctx, "user:*")
	defer s.Close()
	if _, err := s.Receive(checks.Ctx); err != nil {
		return err
	}
	publish := redis.NewScript(`return redis.call('PUBLISH', KEYS[1], ARGV[1])`).Run(checks.Ctx, client, []string{"user:7"}, "x")
	message, err := receive(s)
	if err := errors.Join(publish.Err(), err); err != nil {
		return err
	}
	return checks.Expect(strings.Join([]string{message.Pattern, message.Channel, message.Payload}, " "), "user:* user:7 x")
}
