package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/remote"
)

// perSecond is a limit so high that every call is admitted and therefore written. farPerSecond is
// the limit for leases, which decide more calls.
const perSecond, farPerSecond = 1_000_000, 1_000_000_000

// connectLibrary sets up redis_rate as a program would use it: one client for all callers, with
// default options.
func connectLibrary(ctx context.Context, nodes []string) (*subject, error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes})
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	limiter := redis_rate.NewLimiter(client)
	one := func() decider {
		return func(key string) error {
			r, err := limiter.Allow(ctx, key, redis_rate.Limit{Rate: perSecond, Burst: perSecond, Period: time.Second})
			if err == nil && r.Allowed != 1 {
				err = errors.New("refused")
			}
			return err
		}
	}
	return &subject{one, func() int64 { return 0 }, func() { _ = client.Close() }}, nil // the process ends, so an error does not matter
}

// connectStore opens the store that --store uses behind the commands, without the commands.
func connectStore(ctx context.Context, t task) (*subject, error) {
	o := remote.Options{URL: "redis://" + t.Nodes, Prefix: "cs:", Timeout: time.Second}
	most := int64(perSecond)
	if t.Lease > 0 {
		o.HotKeys, o.HotLease, most = map[string]string{"": "lease"}, t.Lease, farPerSecond
	}
	store, err := remote.Open(o)
	if err != nil {
		return nil, err
	}
	quota, err := gcra.NewQuota(most, most, 1)
	if err != nil {
		return nil, err
	}
	one := func() decider {
		asks, answered := []*decide.Ask{{}}, make(chan struct{}, 1)
		done := func() { answered <- struct{}{} }
		return func(key string) error {
			*asks[0] = decide.Ask{Key: []byte(key), Family: decide.Cell, Quota: quota, Quantity: 1}
			store.Submit(asks, false, done)
			<-answered
			switch a := asks[0]; {
			case a.Err != nil:
				return a.Err
			case !a.Decision.Allowed():
				return errors.New("refused")
			}
			return nil
		}
	}
	messages := func() (sum int64) {
		for _, f := range store.Info().Figures {
			if f.Name == "gets" || f.Name == "swaps" {
				sum += int64(f.Value)
			}
		}
		return sum
	}
	first := one()
	// In the first call, the store learns the time and the nodes.
	return &subject{one, messages, store.Close}, until(ctx, func() error { return first("first") })
}
