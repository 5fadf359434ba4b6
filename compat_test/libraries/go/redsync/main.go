// Command redsync tests go-redsync/redsync with go-redis and with redigo.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

var (
	one = redsync.New(goredis.NewPool(checks.Client()))
	two = redsync.New(redigo.NewPool(&redis.Pool{
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", checks.Addr()) },
	}))
	long = redsync.WithExpiry(time.Hour)
)

func main() {
	checks.Run("github.com/go-redsync/redsync/v4",
		checks.Check{Name: "lock-and-unlock", Run: func() error { return lock(one, two, "a") }},
		checks.Check{Name: "lock-and-unlock-redigo", Run: func() error { return lock(two, one, "b") }},
		checks.Check{Name: "extend", Run: func() error { return extend(one, "c") }},
		checks.Check{Name: "extend-redigo", Run: func() error { return extend(two, "d") }},
		checks.Check{Name: "expires", Run: expires},
		checks.Check{Name: "not-ours", Run: notOurs},
		checks.Check{Name: "one-at-a-time", Run: exclusion},
		checks.Check{Name: "script-flush", Run: func() error {
			m := one.NewMutex("flush", long)
			err := errors.Join(checks.Client().ScriptFlush(checks.Ctx).Err(), m.TryLock())
			ok, unlock := m.Unlock()
			return errors.Join(err, unlock, checks.Expect(ok, true))
		}},
	)
}

// taken returns an error unless locking m fails because it is locked.
func taken(m *redsync.Mutex) error {
	var want *redsync.ErrTaken
	if err := m.TryLock(); !errors.As(err, &want) {
		return fmt.Errorf("got %v, want that it is taken", err)
	}
	return nil
}

func lock(one, two *redsync.Redsync, name string) error {
	mine, other := one.NewMutex(name, long), two.NewMutex(name, long)
	err := errors.Join(mine.TryLock(), taken(other))
	ok, unlock := mine.Unlock()
	return errors.Join(err, unlock, checks.Expect(ok, true), other.TryLock())
}

func extend(r *redsync.Redsync, name string) error {
	m := r.NewMutex(name, redsync.WithExpiry(time.Minute))
	if err := m.TryLock(); err != nil {
		return err
	}
	checks.Client().PExpire(checks.Ctx, name, 30*time.Second)
	ok, err := m.Extend()
	ttl, second := checks.Client().PTTL(checks.Ctx, name).Result()
	return errors.Join(err, second, checks.Expect(ok, true), checks.Within(ttl, 30*time.Second, time.Minute))
}

func expires() error {
	mine, other := one.NewMutex("expires", redsync.WithExpiry(time.Second)), two.NewMutex("expires", long)
	if err := mine.TryLock(); err != nil {
		return err
	}
	err := checks.Reopens(func() (bool, error) {
		err := other.TryLock()
		var held *redsync.ErrTaken
		if errors.As(err, &held) {
			return false, nil
		}
		return err == nil, err
	})
	ok, _ := mine.Unlock()
	return errors.Join(err, checks.Expect(ok, false))
}

func notOurs() error {
	mine := one.NewMutex("not-ours", long)
	if err := mine.TryLock(); err != nil {
		return err
	}
	client := checks.Client()
	client.Set(checks.Ctx, "not-ours", "somebody else", 0)
	unlocked, _ := mine.Unlock()
	extended, _ := mine.Extend()
	value, err := client.Get(checks.Ctx, "not-ours").Result()
	return errors.Join(err, checks.Expect(unlocked, false), checks.Expect(extended, false), checks.Expect(value, "somebody else"))
}

// exclusion makes callers read and write a counter while they hold the lock. The sum is correct
// only if no two of them do that at the same time.
func exclusion() error {
	counter := 0
	with := func(r *redsync.Redsync) func() (bool, error) {
		return func() (bool, error) {
			m := r.NewMutex("exclusion", redsync.WithExpiry(time.Minute), redsync.WithTries(5000), redsync.WithRetryDelay(2*time.Millisecond))
			if err := m.Lock(); err != nil {
				return false, err
			}
			seen := counter
			time.Sleep(time.Millisecond)
			counter = seen + 1
			return m.Unlock()
		}
	}
	err := checks.Parallel(40, 4, 40, with(one), with(two))
	return errors.Join(err, checks.Expect(counter, 40))
}
