// Command redisrate tests go-redis/redis_rate.
package main

import (
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

var (
	client = checks.Client()
	rate   = redis_rate.NewLimiter(client)
)

// call returns a function that calls Allow of l and reports whether the call was admitted.
func call(l *redis_rate.Limiter, key string, limit redis_rate.Limit) func() (bool, error) {
	return func() (bool, error) {
		res, err := l.Allow(checks.Ctx, key, limit)
		return err == nil && res.Allowed == 1, err
	}
}

func main() {
	checks.Run("github.com/go-redis/redis_rate/v10",
		checks.Check{Name: "result", Run: result},
		checks.Check{Name: "limit", Run: func() error {
			return checks.Admits(20, 30, call(rate, "limit", redis_rate.PerHour(20)))
		}},
		checks.Check{Name: "at-once", Run: func() error {
			return checks.Parallel(50, 16, 200, call(rate, "at-once", redis_rate.PerHour(50)))
		}},
		checks.Check{Name: "two-clients", Run: func() error {
			other := redis_rate.NewLimiter(checks.Client())
			limit := redis_rate.PerHour(30)
			return checks.Parallel(30, 8, 100, call(rate, "two", limit), call(other, "two", limit))
		}},
		checks.Check{Name: "several-at-once", Run: several},
		checks.Check{Name: "at-most", Run: atMost},
		checks.Check{Name: "retry-after", Run: retry},
		checks.Check{Name: "reset", Run: reset},
		checks.Check{Name: "ring", Run: ring},
		checks.Check{Name: "script-flush", Run: func() error {
			return errors.Join(client.ScriptFlush(checks.Ctx).Err(),
				checks.Admits(1, 1, call(rate, "flush", redis_rate.PerHour(1))))
		}},
		checks.Check{Name: "error", Run: func() error {
			client.LPush(checks.Ctx, "rate:list", "x")
			_, err := rate.Allow(checks.Ctx, "list", redis_rate.PerHour(1))
			return checks.Refused(err, "WRONGTYPE")
		}},
		checks.Check{Name: "native", Run: native},
	)
}

func result() error {
	res, err := rate.Allow(checks.Ctx, "result", redis_rate.PerHour(10))
	if err != nil {
		return err
	}
	return errors.Join(checks.Expect(res.Allowed, 1), checks.Expect(res.Remaining, 9),
		checks.Expect(res.RetryAfter, time.Duration(-1)),
		checks.Within(res.ResetAfter, 359*time.Second, 360*time.Second+time.Millisecond))
}

func several() error {
	limit := redis_rate.PerHour(10)
	first, err := rate.AllowN(checks.Ctx, "several", limit, 8)
	if err != nil {
		return err
	}
	second, err := rate.AllowN(checks.Ctx, "several", limit, 3)
	if err != nil {
		return err
	}
	return errors.Join(checks.Expect(first.Allowed, 8), checks.Expect(second.Allowed, 0),
		checks.Within(second.RetryAfter, 0, 360*time.Second))
}

func atMost() error {
	limit := redis_rate.PerHour(10)
	first, err := rate.AllowAtMost(checks.Ctx, "at-most", limit, 8)
	if err != nil {
		return err
	}
	second, err := rate.AllowAtMost(checks.Ctx, "at-most", limit, 8)
	if err != nil {
		return err
	}
	return errors.Join(checks.Expect(first.Allowed, 8), checks.Expect(second.Allowed, 2))
}

func retry() error {
	limit := redis_rate.Limit{Rate: 1, Burst: 2, Period: 2 * time.Second}
	if err := checks.Admits(2, 2, call(rate, "retry", limit)); err != nil {
		return err
	}
	res, err := rate.Allow(checks.Ctx, "retry", limit)
	if err != nil {
		return err
	}
	if err := errors.Join(checks.Expect(res.Allowed, 0), checks.Within(res.RetryAfter, 0, 2*time.Second)); err != nil {
		return err
	}
	time.Sleep(res.RetryAfter + checks.Margin)
	return checks.Admits(1, 1, call(rate, "retry", limit))
}

func reset() error {
	limit := redis_rate.PerHour(2)
	return errors.Join(checks.Admits(2, 3, call(rate, "reset", limit)),
		rate.Reset(checks.Ctx, "reset"), checks.Admits(2, 3, call(rate, "reset", limit)))
}

func ring() error {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"server0": checks.Addr()}})
	return checks.Admits(5, 9, call(redis_rate.NewLimiter(ring), "ring", redis_rate.PerHour(5)))
}

// native requires that a single command of the server, with the same limit, replies with the same
// numbers. A burst of b corresponds to a max_burst of b-1. If the server is another program,
// nothing is checked.
func native() error {
	for _, want := range []int64{0, 0, 1} {
		got, err := client.Do(checks.Ctx, "CL.THROTTLE", "native", 1, 2, 3600, 1).Int64Slice()
		if checks.AnotherServer(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(checks.Expect(got[0], want), checks.Expect(got[1], int64(2))); err != nil {
			return err
		}
	}
	return nil
}
