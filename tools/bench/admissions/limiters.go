package main

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

type limiter struct {
	file    string
	title   string
	command string
	decide  decider
}

// limiters returns the limiters to draw. Each has the parameters of the commands beside it.
func limiters() []limiter {
	return []limiter{
		{"gcra", "GCRA, token bucket", "CL.THROTTLE k 9 1 1, TB.ACQUIRE k 10 1 1", cell()},
		{"interval", "INTERVAL", "TB.ACQUIRE k 10 10 10 INTERVAL", bucket(tokenbucket.Call{
			Mode: tokenbucket.Interval, Count: 10, Period: window,
		})},
		{"leaky", "LEAKY", "TB.ACQUIRE k 10 1 1 LEAKY", bucket(tokenbucket.Call{
			Mode: tokenbucket.Leaky, Count: 1, Period: time.Second,
		})},
		{"warmup", "WARMUP", "TB.ACQUIRE k 10 1 1 WARMUP 10 WAIT 2", bucket(tokenbucket.Call{
			Mode: tokenbucket.Warmup, Count: 1, Period: time.Second,
			Warmup: 10 * time.Second, Cold: 3, Waits: true, MaxWait: 2 * time.Second,
		})},
		{"debt", "DEBT", "TB.ACQUIRE k 10 1 1 DEBT", bucket(tokenbucket.Call{
			Mode: tokenbucket.Debt, Count: 1, Period: time.Second,
		})},
		{"counter", "COUNTER", "SW.ALLOW k 10 10", windows(slidingwindow.Call{Mode: slidingwindow.Counter})},
		{"fixed", "FIXED", "SW.ALLOW k 10 10 FIXED", windows(slidingwindow.Call{Mode: slidingwindow.Fixed})},
		{"log", "LOG", "SW.ALLOW k 10 10 LOG", windows(slidingwindow.Call{Mode: slidingwindow.Log})},
		{"buckets", "BUCKETS", "SW.ALLOW k 10 10 BUCKETS 5", windows(slidingwindow.Call{Mode: slidingwindow.Buckets, Slots: 5})},
	}
}

// The decisions below cannot fail, because the parameters are constants.

func cell() decider {
	quota, err := gcra.NewQuota(most-1, 1, 1)
	must(err)
	var tat limit.Instant
	return func(now limit.Instant, units int64) (bool, time.Duration) {
		next, d, write := gcra.Decide(tat, now, &quota, units)
		if write {
			tat = next
		}
		return d.Allowed(), 0
	}
}

func bucket(c tokenbucket.Call) decider {
	c.Capacity, c.Init = most, most
	c.Interval = c.Period / time.Duration(c.Count)
	var (
		mode   tokenbucket.Mode
		value  []byte
		expiry limit.Instant
		plan   tokenbucket.Plan
	)
	return func(now limit.Instant, units int64) (bool, time.Duration) {
		if expiry <= now {
			mode, value = tokenbucket.None, nil
		}
		c.Quantity = units
		must(c.Validate())
		must(tokenbucket.Decide(mode, value, expiry, now, &c, &plan))
		if plan.Action == tokenbucket.Store {
			mode, value, expiry = plan.Mode, plan.Apply(value, nil), plan.Expiry
		}
		return plan.Decision.Allowed(), plan.Decision.RetryAfter
	}
}

func windows(c slidingwindow.Call) decider {
	c.Limit, c.Window = most, window
	var (
		mode   slidingwindow.Mode
		value  []byte
		expiry limit.Instant
		plan   slidingwindow.Plan
	)
	return func(now limit.Instant, units int64) (bool, time.Duration) {
		if expiry <= now {
			mode, value = slidingwindow.None, nil
		}
		c.Quantity = units
		must(c.Validate())
		must(slidingwindow.Decide(mode, value, expiry, now, &c, &plan))
		if plan.Action == slidingwindow.Store {
			mode, value, expiry = plan.Mode, plan.Apply(value, nil), plan.Expiry
		}
		return plan.Decision.Allowed(), 0
	}
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("admissions: %v", err))
	}
}
