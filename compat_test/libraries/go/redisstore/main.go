// Command redisstore tests sethvargo/go-redisstore, and runs a test of that library.
package main

import (
	"errors"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sethvargo/go-limiter"
	redisstore "github.com/sethvargo/go-redisstore"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

func store(tokens uint64, interval time.Duration) limiter.Store {
	s, err := redisstore.New(&redisstore.Config{
		Tokens: tokens, Interval: interval,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", checks.Addr()) },
	})
	if err != nil {
		panic(err)
	}
	return s
}

func call(s limiter.Store, key string) func() (bool, error) {
	return func() (bool, error) {
		_, _, _, ok, err := s.Take(checks.Ctx, key)
		return ok, err
	}
}

func main() {
	host, port, _ := net.SplitHostPort(checks.Addr())
	own := checks.OwnTests("redisstore.test", []string{"REDIS_HOST=" + host, "REDIS_PORT=" + port}, "TestStore_Exercise")
	client := checks.Client()
	all := []checks.Check{
		{Name: "limit", Run: func() error { return checks.Admits(20, 30, call(store(20, time.Hour), "limit")) }},
		{Name: "at-once", Run: func() error { return checks.Parallel(50, 16, 200, call(store(50, time.Hour), "at-once")) }},
		{Name: "two-clients", Run: func() error {
			return checks.Parallel(30, 8, 100, call(store(30, time.Hour), "two"), call(store(30, time.Hour), "two"))
		}},
		{Name: "next", Run: next},
		{Name: "set-and-burst", Run: setAndBurst},
		{Name: "delete", Run: func() error {
			s := store(2, time.Hour)
			first := checks.Admits(2, 3, call(s, "delete"))
			return errors.Join(first, client.Del(checks.Ctx, "delete").Err(), checks.Admits(2, 3, call(s, "delete")))
		}},
		{Name: "script-flush", Run: func() error {
			return errors.Join(client.ScriptFlush(checks.Ctx).Err(), checks.Admits(1, 2, call(store(1, time.Hour), "flush")))
		}},
		{Name: "error", Run: func() error {
			client.LPush(checks.Ctx, "list", "x")
			_, err := call(store(1, time.Hour), "list")()
			return checks.Refused(err, "WRONGTYPE")
		}},
	}
	checks.Run("github.com/sethvargo/go-redisstore", append(all, own...)...)
}

func next() error {
	s := store(2, 2*time.Second)
	if err := checks.Admits(2, 2, call(s, "next")); err != nil {
		return err
	}
	_, _, at, ok, err := s.Take(checks.Ctx, "next")
	if err := errors.Join(err, checks.Expect(ok, false)); err != nil {
		return err
	}
	wait := time.Until(time.Unix(0, int64(at)))
	if wait > 2*time.Second {
		return errors.New("it is to wait longer than the interval: " + wait.String())
	}
	time.Sleep(wait + checks.Margin)
	return checks.Admits(2, 3, call(s, "next"))
}

func setAndBurst() error {
	s := store(2, time.Hour)
	first := errors.Join(s.Set(checks.Ctx, "set", 5, time.Hour), checks.Admits(5, 8, call(s, "set")))
	return errors.Join(first, s.Burst(checks.Ctx, "set", 3), checks.Admits(3, 8, call(s, "set")))
}
