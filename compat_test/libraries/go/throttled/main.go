// Command throttled tests the GCRA limiter of throttled with its go-redis and redigo stores.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/redigostore"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

// attempts is the maximum number of times that a call may fail to store its result because another
// call was faster. With the default of ten, a call of sixteen concurrent ones may fail with an
// error.
const attempts = 10000

var client = checks.Client()

func goRedis() throttled.GCRAStoreCtx {
	s, err := goredisstore.NewCtx(checks.Client(), "throttled:")
	if err != nil {
		panic(err)
	}
	return s
}

func redigo() throttled.GCRAStoreCtx {
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", checks.Addr()) }}
	s, err := redigostore.NewCtx(pool, "throttled:", 0)
	if err != nil {
		panic(err)
	}
	return s
}

func call(s throttled.GCRAStoreCtx, key string, burst int, rate throttled.Rate) func() (bool, error) {
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: rate, MaxBurst: burst})
	if err != nil {
		panic(err)
	}
	l.SetMaxCASAttemptsLimit(attempts)
	return func() (bool, error) {
		limited, _, err := l.RateLimitCtx(context.Background(), key, 1)
		return !limited && err == nil, err
	}
}

func main() {
	all := append(ofStore("go-redis", goRedis()), ofStore("redigo", redigo())...)
	all = append(all,
		checks.Check{Name: "two-clients", Run: func() error {
			return checks.Parallel(30, 8, 80, call(goRedis(), "two", 29, throttled.PerHour(1)),
				call(redigo(), "two", 29, throttled.PerHour(1)))
		}},
		checks.Check{Name: "error", Run: func() error {
			client.LPush(checks.Ctx, "throttled:list", "x")
			_, err := call(goRedis(), "list", 1, throttled.PerHour(1))()
			return checks.Refused(err, "WRONGTYPE")
		}},
		checks.Check{Name: "native", Run: native},
	)
	checks.Run("github.com/throttled/throttled/v2", all...)
}

func ofStore(name string, s throttled.GCRAStoreCtx) []checks.Check {
	return []checks.Check{
		{Name: name + "-limit", Run: func() error {
			return checks.Admits(20, 30, call(s, name+"limit", 19, throttled.PerHour(1)))
		}},
		{Name: name + "-at-once", Run: func() error {
			return checks.Parallel(30, 8, 80, call(s, name+"at-once", 29, throttled.PerHour(1)))
		}},
		{Name: name + "-retry-after", Run: func() error { return retry(s, name) }},
	}
}

func retry(s throttled.GCRAStoreCtx, key string) error {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(1, 2*time.Second), MaxBurst: 1}
	l, err := throttled.NewGCRARateLimiterCtx(s, quota)
	if err != nil {
		return err
	}
	if err := checks.Admits(2, 2, call(s, key+"retry", 1, quota.MaxRate)); err != nil {
		return err
	}
	limited, result, err := l.RateLimitCtx(checks.Ctx, key+"retry", 1)
	if err := errors.Join(err, checks.Expect(limited, true), checks.Within(result.RetryAfter, 0, 2*time.Second)); err != nil {
		return err
	}
	time.Sleep(result.RetryAfter + checks.Margin)
	return checks.Admits(1, 1, call(s, key+"retry", 1, quota.MaxRate))
}

// native requires that a single command of the server decides like the quota in the documentation
// of the library. If the server is another program, nothing is checked.
func native() error {
	quota := throttled.RateQuota{MaxRate: throttled.PerHour(20), MaxBurst: 5}
	l, err := throttled.NewGCRARateLimiterCtx(goRedis(), quota)
	if err != nil {
		return err
	}
	for range 8 {
		got, err := client.Do(checks.Ctx, "CL.THROTTLE", "native", 5, 20, 3600, 1).Int64Slice()
		if checks.AnotherServer(err) {
			return nil
		}
		limited, result, second := l.RateLimitCtx(checks.Ctx, "beside-native", 1)
		if err := errors.Join(err, second); err != nil {
			return err
		}
		if err := errors.Join(checks.Expect(got[0] == 1, limited), checks.Expect(int(got[1]), result.Limit),
			checks.Expect(int(got[2]), result.Remaining)); err != nil {
			return err
		}
	}
	return nil
}
