// Command limiters tests mennanov/limiters with its Redis back ends and its Redis lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/mennanov/limiters"
	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

const hour = time.Hour

var (
	client = checks.Client()
	clock  = limiters.NewSystemClock()
	quiet  = limiters.NewStdLogger()
)

// limiter is the method that all limiters of the library have.
type limiter interface {
	Limit(ctx context.Context) (time.Duration, error)
}

func call(l limiter) func() (bool, error) {
	return func() (bool, error) {
		_, err := l.Limit(checks.Ctx)
		if errors.Is(err, limiters.ErrLimitExhausted) {
			return false, nil
		}
		return err == nil, err
	}
}

// lock returns the distributed lock that the token and leaky buckets take for each call. With a
// client of its own it acts like the lock of another process.
func lock(c *redis.Client, key string) limiters.DistLocker {
	return limiters.NewLockRedis(goredis.NewPool(c), "lock:"+key,
		redsync.WithTries(2000), redsync.WithRetryDelay(2*time.Millisecond))
}

func bucket(key string, capacity int64, refill time.Duration) *limiters.TokenBucket {
	c := checks.Client()
	return limiters.NewTokenBucket(capacity, refill, lock(c, key),
		limiters.NewTokenBucketRedis(c, key, hour, true), clock, quiet)
}

// leaky returns a leaky bucket that admits one call at once and queues capacity further calls.
func leaky(key string, capacity int64, rate time.Duration) *limiters.LeakyBucket {
	c := checks.Client()
	return limiters.NewLeakyBucket(capacity, rate, lock(c, key),
		limiters.NewLeakyBucketRedis(c, key, hour, true), clock, quiet)
}

func fixed(key string, capacity int64, window time.Duration) *limiters.FixedWindow {
	return limiters.NewFixedWindow(capacity, window, limiters.NewFixedWindowRedis(checks.Client(), key), clock)
}

func sliding(key string, capacity int64, window time.Duration) *limiters.SlidingWindow {
	return limiters.NewSlidingWindow(capacity, window, limiters.NewSlidingWindowRedis(checks.Client(), key), clock, 1e-9)
}

func main() {
	checks.Run("github.com/mennanov/limiters",
		checks.Check{Name: "token-bucket", Run: func() error { return checks.Admits(20, 30, call(bucket("tb", 20, hour))) }},
		checks.Check{Name: "token-bucket-at-once", Run: func() error {
			return checks.Parallel(20, 4, 30, call(bucket("tb2", 20, hour)), call(bucket("tb2", 20, hour)))
		}},
		checks.Check{Name: "token-bucket-refill", Run: func() error {
			return waits(bucket("tb3", 2, 2*time.Second), 2, 2*time.Second)
		}},
		checks.Check{Name: "token-bucket-reset", Run: func() error {
			b := bucket("tb4", 2, hour)
			return errors.Join(checks.Admits(2, 3, call(b)), b.Reset(checks.Ctx), checks.Admits(2, 3, call(b)))
		}},
		checks.Check{Name: "race-check", Run: raceCheck},
		checks.Check{Name: "leaky-bucket", Run: func() error { return checks.Admits(11, 15, call(leaky("lb", 10, hour))) }},
		checks.Check{Name: "leaky-bucket-at-once", Run: func() error {
			return checks.Parallel(11, 4, 20, call(leaky("lb2", 10, hour)), call(leaky("lb2", 10, hour)))
		}},
		checks.Check{Name: "fixed-window-at-once", Run: func() error {
			checks.Room(hour, 30*time.Second)
			return checks.Parallel(50, 8, 200, call(fixed("fw", 50, hour)), call(fixed("fw", 50, hour)))
		}},
		checks.Check{Name: "fixed-window-reopens", Run: func() error {
			checks.Room(2*time.Second, time.Second)
			return waits(fixed("fw2", 2, 2*time.Second), 2, 2*time.Second)
		}},
		checks.Check{Name: "sliding-window-at-once", Run: func() error {
			checks.Room(hour, 30*time.Second)
			return checks.Parallel(50, 8, 200, call(sliding("sw", 50, hour)), call(sliding("sw", 50, hour)))
		}},
		checks.Check{Name: "concurrent-buffer", Run: buffer},
		checks.Check{Name: "error", Run: func() error {
			client.HSet(checks.Ctx, fmt.Sprintf("{sw2}%d", time.Now().Truncate(hour).UnixNano()), "a", "b")
			client.HSet(checks.Ctx, fmt.Sprintf("sw2/%d", time.Now().Truncate(hour).UnixNano()), "a", "b")
			_, err := call(sliding("sw2", 2, hour))()
			return checks.Refused(err, "WRONGTYPE")
		}},
	)
}

// waits requires that n calls are admitted and a further one is denied with a waiting time of at
// most longest. It waits for that time, and requires that the next call is admitted.
func waits(l limiter, n int, longest time.Duration) error {
	if err := checks.Admits(n, n, call(l)); err != nil {
		return err
	}
	wait, err := l.Limit(checks.Ctx)
	if !errors.Is(err, limiters.ErrLimitExhausted) {
		return fmt.Errorf("got %v, want a refusal", err)
	}
	if err := checks.Within(wait, 0, longest); err != nil {
		return err
	}
	time.Sleep(wait + checks.Margin)
	return checks.Admits(1, 1, call(l))
}

// raceCheck makes two clients write, without a lock, the state that both have read. It requires
// that the second write fails.
func raceCheck() error {
	one := limiters.NewTokenBucketRedis(client, "race", hour, true)
	two := limiters.NewTokenBucketRedis(client, "race", hour, true)
	first, err := one.State(checks.Ctx)
	_, second := two.State(checks.Ctx)
	if err := errors.Join(err, second, one.SetState(checks.Ctx, first)); err != nil {
		return err
	}
	if err := two.SetState(checks.Ctx, first); !errors.Is(err, limiters.ErrRaceCondition) {
		return fmt.Errorf("got %v, want %v", err, limiters.ErrRaceCondition)
	}
	return nil
}

func buffer() error {
	open := func() *limiters.ConcurrentBuffer {
		c := checks.Client()
		return limiters.NewConcurrentBuffer(lock(c, "cb"), limiters.NewConcurrentBufferRedis(c, "cb", hour, clock), 2, quiet)
	}
	one, two := open(), open()
	if err := errors.Join(one.Limit(checks.Ctx, "a"), two.Limit(checks.Ctx, "b")); err != nil {
		return err
	}
	if err := one.Limit(checks.Ctx, "c"); !errors.Is(err, limiters.ErrLimitExhausted) {
		return fmt.Errorf("got %v, want %v", err, limiters.ErrLimitExhausted)
	}
	return errors.Join(two.Done(checks.Ctx, "b"), one.Limit(checks.Ctx, "c"))
}
