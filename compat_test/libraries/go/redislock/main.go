// Command redislock tests bsm/redislock.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

var one, two = redislock.New(checks.Client()), redislock.New(checks.Client())

func main() {
	checks.Run("github.com/bsm/redislock",
		checks.Check{Name: "obtain-and-release", Run: obtain},
		checks.Check{Name: "ttl-and-refresh", Run: refresh},
		checks.Check{Name: "expires", Run: expires},
		checks.Check{Name: "not-held", Run: notHeld},
		checks.Check{Name: "metadata", Run: metadata},
		checks.Check{Name: "retry", Run: retry},
		checks.Check{Name: "one-at-a-time", Run: exclusion},
		checks.Check{Name: "script-flush", Run: func() error {
			err := checks.Client().ScriptFlush(checks.Ctx).Err()
			lock, obtained := one.Obtain(checks.Ctx, "flush", time.Hour, nil)
			if err := errors.Join(err, obtained); err != nil {
				return err
			}
			return lock.Release(checks.Ctx)
		}},
	)
}

// is returns an error unless err is want, an error of the library.
func is(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, want %v", err, want)
	}
	return nil
}

func obtain() error {
	lock, err := one.Obtain(checks.Ctx, "obtain", time.Hour, nil)
	if err != nil {
		return err
	}
	_, taken := two.Obtain(checks.Ctx, "obtain", time.Hour, nil)
	if err := errors.Join(is(taken, redislock.ErrNotObtained), lock.Release(checks.Ctx)); err != nil {
		return err
	}
	_, err = two.Obtain(checks.Ctx, "obtain", time.Hour, nil)
	return err
}

func refresh() error {
	lock, err := one.Obtain(checks.Ctx, "refresh", time.Minute, nil)
	if err != nil {
		return err
	}
	before, first := lock.TTL(checks.Ctx)
	err = lock.Refresh(checks.Ctx, time.Hour, nil)
	after, second := lock.TTL(checks.Ctx)
	return errors.Join(first, err, second, checks.Within(before, 0, time.Minute), checks.Within(after, time.Minute, time.Hour))
}

func expires() error {
	lock, err := one.Obtain(checks.Ctx, "expires", time.Second, nil)
	if err != nil {
		return err
	}
	err = checks.Reopens(func() (bool, error) {
		_, err := two.Obtain(checks.Ctx, "expires", time.Hour, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return false, nil
		}
		return err == nil, err
	})
	return errors.Join(err, is(lock.Release(checks.Ctx), redislock.ErrLockNotHeld),
		is(lock.Refresh(checks.Ctx, time.Hour, nil), redislock.ErrNotObtained))
}

func notHeld() error {
	lock, err := one.Obtain(checks.Ctx, "not-held", time.Hour, nil)
	if err != nil {
		return err
	}
	return errors.Join(lock.Release(checks.Ctx), is(lock.Release(checks.Ctx), redislock.ErrLockNotHeld))
}

func metadata() error {
	lock, err := one.Obtain(checks.Ctx, "metadata", time.Hour, &redislock.Options{Metadata: "who"})
	if err != nil {
		return err
	}
	value, err := checks.Client().Get(checks.Ctx, "metadata").Result()
	return errors.Join(err, checks.Expect(value, lock.Token()+"who"))
}

func retry() error {
	if _, err := one.Obtain(checks.Ctx, "retry", time.Second, nil); err != nil {
		return err
	}
	_, err := two.Obtain(checks.Ctx, "retry", time.Hour, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(20*time.Millisecond), 1000),
	})
	// Obtain does not wait longer than the lifetime of the lock, which is an hour here.
	return err
}

// exclusion makes callers read and write a counter while they hold the lock. The sum is correct
// only if no two of them do that at the same time.
func exclusion() error {
	counter := 0
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(2 * time.Millisecond)}
	with := func(c *redislock.Client) func() (bool, error) {
		return func() (bool, error) {
			lock, err := c.Obtain(checks.Ctx, "exclusion", time.Minute, options)
			if err != nil {
				return false, err
			}
			seen := counter
			time.Sleep(time.Millisecond)
			counter = seen + 1
			return true, lock.Release(checks.Ctx)
		}
	}
	err := checks.Parallel(40, 4, 40, with(one), with(two))
	return errors.Join(err, checks.Expect(counter, 40))
}
