package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The limit that is asked for, as the words of a command: 100 at once, then 100 each second.
const (
	limitKey  = "api"
	perSecond = 100
	burst     = 100
)

func throttle() []any { return []any{"CL.THROTTLE", limitKey, burst - 1, perSecond, 1} }

// load is what clients do, and what came of it. Each writer has a counter of its own, so that
// the reply of INCR shows whether an earlier one was lost.
type load struct {
	client *redis.Client
	work   sync.WaitGroup

	mu sync.Mutex // guards what follows
	// sum are the counts so far.
	sum counts
	// highest is the last value of each counter that was acknowledged.
	highest []int64
	// answered is when a call was answered last, and away the longest time without an answer.
	answered time.Time
	away     time.Duration
}

// counts are what came of calls.
type counts struct {
	acked            int64  // INCR that were answered with a number
	lost             int64  // of these, how many the server did not have later
	admitted, denied int64  // CL.THROTTLE
	failed           int64  // calls of both that were answered with an error, or not
	why              string // the error of the last of these
}

// newLoad starts writers, and callers of the limit, through a client that asks the sentinels
// where the primary is. They end with ctx.
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

// counter is the key of a writer.
func counter(i int) string { return fmt.Sprintf("counter:%d", i) }

// count adds one to the counter of a writer, again and again.
func (l *load) count(ctx context.Context, i int) {
	for ctx.Err() == nil {
		value, err := l.client.Incr(ctx, counter(i)).Result()
		if ctx.Err() != nil && err != nil {
			return // the end of the load is no failure
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

// ask asks for the limit, again and again, about twice as often as it admits.
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

// note counts a failure, or notes that a call was answered. The caller holds mu.
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

// pause waits a little after a call that failed, and less after another: the load is to leave
// room on a small machine.
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

// check compares the counters with what was acknowledged, after the load has ended. It
// returns the sum of the counters and how many acknowledged calls are not in them, those
// before included.
func (l *load) check(ctx context.Context) (stored, lost int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = l.sum.lost
	for i, highest := range l.highest {
		value, err := l.client.Get(ctx, counter(i)).Int64()
		if err != nil && err != redis.Nil { //nolint:errorlint // it is never wrapped
			return 0, 0, fmt.Errorf("reading %s: %w", counter(i), err)
		}
		stored += value
		lost += max(0, highest-value)
	}
	return stored, lost, nil
}
