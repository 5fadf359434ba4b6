package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// limitKey, perSecond and burst are the limit that clients use: 100 calls at once, then 100 in each
// second.
const (
	limitKey  = "api"
	perSecond = 100
	burst     = 100
)

func throttle() []any { return []any{"CL.THROTTLE", limitKey, burst - 1, perSecond, 1} }

// load is a load of clients and its results. Each writer has a counter of its own, so that the
// reply of INCR shows whether an earlier INCR was lost.
type load struct {
	client *redis.Client
	work   sync.WaitGroup

	mu sync.Mutex // mu guards the fields below
	// sum has the counts so far.
	sum counts
	// highest has, for each counter, the last value that was acknowledged.
	highest []int64
	// answered is the time of the last answer to any call, and away the longest time without an
	// answer.
	answered time.Time
	away     time.Duration
}

// counts has the numbers of calls by outcome.
type counts struct {
	acked            int64  // number of calls of INCR that were answered with a number
	lost             int64  // number of these calls whose effect was missing on the server later
	admitted, denied int64  // numbers of calls of CL.THROTTLE by their decision
	failed           int64  // number of calls of INCR or CL.THROTTLE that were answered with an error, or not at all
	why              string // the error of the last failed call
}

// newLoad starts writers clients that call INCR, and two that call CL.THROTTLE. They use a client
// that asks the sentinels for the address of the primary. They end when ctx ends.
func newLoad(ctx context.Context, n *nodes, writers int) *load {
	l := &load{
		client: redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: masterName, SentinelAddrs: n.sentinels, MaxRetries: -1, DisableIdentity: true, ReadTimeout: 2 * time.Second,
		}),
		highest: make([]int64, writers), answered: time.Now(),
	}
	for i := range writers {
		l.work.Go(func() { l.count(ctx, i) })
	}
	for range 2 {
		l.work.Go(func() { l.ask(ctx) })
	}
	return l
}

func counter(i int) string { return fmt.Sprintf("counter:%d", i) }

// count adds one to the counter of writer i repeatedly, until ctx ends.
func (l *load) count(ctx context.Context, i int) {
	for ctx.Err() == nil {
		value, err := l.client.Incr(ctx, counter(i)).Result()
		if ctx.Err() != nil && err != nil {
			return // the end of the load is not a failure
		}
		l.mu.Lock()
		if l.note(err) {
			l.sum.acked++
			l.sum.lost += max(0, l.highest[i]-value+1)
			l.highest[i] = value
		}
		l.mu.Unlock()
		pause(ctx, err)
	}
}

// ask calls CL.THROTTLE repeatedly until ctx ends, about twice as often as the limit admits.
func (l *load) ask(ctx context.Context) {
	for ctx.Err() == nil {
		reply, err := l.client.Do(ctx, throttle()...).Int64Slice()
		if ctx.Err() != nil && err != nil {
			return
		}
		l.mu.Lock()
		if l.note(err) {
			l.sum.denied += reply[0]
			l.sum.admitted += 1 - reply[0]
		}
		l.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
}

// note records the outcome of a call. It returns true if err is nil. The caller holds mu.
func (l *load) note(err error) bool {
	if err != nil {
		l.sum.failed++
		l.sum.why = err.Error()
		return false
	}
	now := time.Now()
	l.away = max(l.away, now.Sub(l.answered))
	l.answered = now
	return true
}

// pause waits a little after a call that failed, and less after a successful one, so that the load
// leaves room for the servers on a small machine.
func pause(ctx context.Context, err error) {
	wait := 200 * time.Microsecond
	if err != nil {
		wait = 5 * time.Millisecond
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// now returns the counts so far, and the longest time without an answer.
func (l *load) now() (counts, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum, l.away
}

// check compares the counters with the acknowledged calls, after the load has ended. stored is the
// sum of the counters, and lost the number of acknowledged calls that are not in them, with those
// that were lost before.
func (l *load) check(ctx context.Context) (stored, lost int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = l.sum.lost
	for i, highest := range l.highest {
		value, err := l.client.Get(ctx, counter(i)).Int64()
		if err != nil && err != redis.Nil { //nolint:errorlint // the client library never wraps redis.Nil
			return 0, 0, fmt.Errorf("reading %s: %w", counter(i), err)
		}
		stored += value
		lost += max(0, highest-value)
	}
	return stored, lost, nil
}
