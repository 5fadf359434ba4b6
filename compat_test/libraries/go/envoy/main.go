// Command envoy sends the commands that envoyproxy/ratelimit sends to Redis, with the same client
// library. For every descriptor it sends INCRBY and EXPIRE in a pipeline. If counting has to stop
// at the limit, it sends GET before.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mediocregopher/radix/v4"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

// descriptor is one limit of a request.
type descriptor struct {
	name  string
	limit int64
	unit  time.Duration
}

// key returns the key of the descriptor for the present window. As in the service, it contains the
// start of the window in Unix seconds.
func (d descriptor) key() string {
	return fmt.Sprintf("domain_%s_%d", d.name, time.Now().Truncate(d.unit).Unix())
}

func dial() radix.Client {
	client, err := (radix.PoolConfig{Size: 4}).New(checks.Ctx, "tcp", checks.Addr())
	if err != nil {
		panic(err)
	}
	return client
}

// limit counts one hit for every descriptor, and returns for each whether it is within its limit.
// If stop is true, it counts nothing when one of them has reached its limit.
func limit(c radix.Client, stop bool, all ...descriptor) ([]bool, error) {
	hits := int64(1)
	counts := make([]int64, len(all))
	if stop {
		get := radix.NewPipeline()
		for i, d := range all {
			get.Append(radix.Cmd(&counts[i], "GET", d.key()))
		}
		if err := c.Do(checks.Ctx, get); err != nil {
			return nil, err
		}
		for i, d := range all {
			if counts[i] >= d.limit {
				hits = 0
			}
		}
	}
	pipeline := radix.NewPipeline()
	for i, d := range all {
		pipeline.Append(radix.FlatCmd(&counts[i], "INCRBY", d.key(), hits))
		pipeline.Append(radix.FlatCmd(nil, "EXPIRE", d.key(), int64(d.unit/time.Second)))
	}
	if err := c.Do(checks.Ctx, pipeline); err != nil {
		return nil, err
	}
	within := make([]bool, len(all))
	for i, d := range all {
		within[i] = counts[i]+1-hits <= d.limit
	}
	return within, nil
}

func call(c radix.Client, stop bool, all ...descriptor) func() (bool, error) {
	return func() (bool, error) {
		within, err := limit(c, stop, all...)
		for _, ok := range within {
			if !ok {
				return false, err
			}
		}
		return err == nil, err
	}
}

func hourly(name string, n int64) descriptor { return descriptor{name, n, time.Hour} }

func main() {
	c := dial()
	checks.Room(time.Hour, 30*time.Second)
	checks.Run("github.com/mediocregopher/radix/v4",
		checks.Check{Name: "limit", Run: func() error { return checks.Admits(20, 30, call(c, false, hourly("limit", 20))) }},
		checks.Check{Name: "at-once", Run: func() error {
			return checks.Parallel(50, 16, 200, call(c, false, hourly("at-once", 50)))
		}},
		checks.Check{Name: "two-clients", Run: func() error {
			return checks.Parallel(30, 8, 100, call(c, false, hourly("two", 30)), call(dial(), false, hourly("two", 30)))
		}},
		checks.Check{Name: "two-descriptors", Run: func() error {
			return checks.Admits(5, 9, call(c, false, hourly("first", 5), hourly("second", 8)))
		}},
		checks.Check{Name: "stop-counting", Run: func() error {
			d := []descriptor{hourly("stop", 5), hourly("go-on", 8)}
			var count int64
			err := checks.Admits(5, 9, call(c, true, d...))
			return errors.Join(err, c.Do(checks.Ctx, radix.Cmd(&count, "GET", d[1].key())), checks.Expect(count, int64(5)))
		}},
		checks.Check{Name: "expires", Run: func() error {
			d := hourly("expires", 1)
			var ttl int64
			_, err := limit(c, false, d)
			return errors.Join(err, c.Do(checks.Ctx, radix.Cmd(&ttl, "TTL", d.key())), checks.Expect(ttl > 3500 && ttl <= 3600, true))
		}},
		checks.Check{Name: "next-window", Run: func() error {
			d := descriptor{"next", 2, 2 * time.Second}
			checks.Room(d.unit, time.Second)
			return errors.Join(checks.Admits(2, 3, call(c, false, d)), checks.Reopens(call(c, false, d)))
		}},
		checks.Check{Name: "implicit-pipelining", Run: func() error {
			// By default the service sends commands of many callers in one write.
			return checks.Parallel(100, 32, 400, call(c, false, hourly("many", 100)))
		}},
		checks.Check{Name: "error", Run: func() error {
			d := hourly("list", 1)
			push := c.Do(checks.Ctx, radix.Cmd(nil, "LPUSH", d.key(), "x"))
			_, err := limit(c, false, d)
			return errors.Join(push, checks.Refused(err, "WRONGTYPE"))
		}},
	)
}
