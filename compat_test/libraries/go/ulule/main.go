// Command ulule tests ulule/limiter with its Redis store, and runs the tests of that store.
package main

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	store "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

var client = checks.Client()

func newLimiter(c *redis.Client, limit int64, period time.Duration) *limiter.Limiter {
	s, err := store.NewStoreWithOptions(c, limiter.StoreOptions{Prefix: "ulule"})
	if err != nil {
		panic(err)
	}
	return limiter.New(s, limiter.Rate{Limit: limit, Period: period})
}

func call(l *limiter.Limiter, key string) func() (bool, error) {
	return func() (bool, error) {
		got, err := l.Get(checks.Ctx, key)
		return err == nil && !got.Reached, err
	}
}

func main() {
	own := checks.OwnTests("ulule.test", []string{"REDIS_URI=redis://" + checks.Addr() + "/0"},
		"TestRedisStoreSequentialAccess", "TestRedisStoreConcurrentAccess", "TestRedisClientExpiration")
	all := []checks.Check{
		{Name: "limit", Run: func() error { return checks.Admits(20, 30, call(newLimiter(client, 20, time.Hour), "limit")) }},
		{Name: "at-once", Run: func() error {
			return checks.Parallel(50, 16, 200, call(newLimiter(client, 50, time.Hour), "at-once"))
		}},
		{Name: "two-clients", Run: func() error {
			return checks.Parallel(30, 8, 100, call(newLimiter(client, 30, time.Hour), "two"),
				call(newLimiter(checks.Client(), 30, time.Hour), "two"))
		}},
		{Name: "peek-and-increment", Run: increment},
		{Name: "reset-time", Run: resetTime},
		{Name: "reset", Run: reset},
		{Name: "script-flush", Run: func() error {
			l := newLimiter(client, 1, time.Hour)
			return errors.Join(client.ScriptFlush(checks.Ctx).Err(), checks.Admits(1, 2, call(l, "flush")))
		}},
		{Name: "error", Run: func() error {
			client.LPush(checks.Ctx, "ulule:list", "x")
			_, err := newLimiter(client, 1, time.Hour).Get(checks.Ctx, "list")
			return checks.Refused(err, "WRONGTYPE")
		}},
	}
	checks.Run("github.com/ulule/limiter/v3", append(all, own...)...)
}

func increment() error {
	l := newLimiter(client, 10, time.Hour)
	got, err := l.Increment(checks.Ctx, "increment", 8)
	peek, second := l.Peek(checks.Ctx, "increment")
	over, third := l.Increment(checks.Ctx, "increment", 3)
	return errors.Join(err, second, third, checks.Expect(got.Remaining, int64(2)),
		checks.Expect(peek.Remaining, int64(2)), checks.Expect(peek.Reached, false), checks.Expect(over.Reached, true))
}

func resetTime() error {
	l := newLimiter(client, 2, 2*time.Second)
	if err := checks.Admits(2, 3, call(l, "window")); err != nil {
		return err
	}
	got, err := l.Peek(checks.Ctx, "window")
	if err != nil {
		return err
	}
	wait := time.Until(time.Unix(got.Reset+1, 0)) // got.Reset is in whole seconds, rounded down
	if wait > 3*time.Second {
		return errors.New("it resets later than its window ends: " + wait.String())
	}
	time.Sleep(wait + checks.Margin)
	return checks.Admits(2, 3, call(l, "window"))
}

func reset() error {
	l := newLimiter(client, 2, time.Hour)
	first := checks.Admits(2, 3, call(l, "reset"))
	_, err := l.Reset(checks.Ctx, "reset")
	return errors.Join(first, err, checks.Admits(2, 3, call(l, "reset")))
}
