package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// writers is the number of clients that call INCR.
const writers = 8

// grace is the maximum number of further seconds for which the servers are called until the next
// primary answers.
const grace = 60

// play calls the servers, kills the primary after s.kill seconds, and prints a line each second.
func (s *show) play(ctx context.Context, n *nodes) error {
	redis.SetLogger(quiet{})
	loaded, end := context.WithCancel(ctx)
	defer end()
	began := time.Now()
	l := newLoad(loaded, n, writers)
	defer l.client.Close() //nolint:errcheck // an error of Close does not matter
	defer l.work.Wait()
	defer end()

	fmt.Fprintln(s.w, "second  INCR acknowledged  admitted  denied  failed")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before counts
	events := events{show: s, nodes: n}
	for second := 1; second <= s.seconds || events.pending() && second <= s.seconds+grace; second++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		is, _ := l.now()
		why := ""
		if is.failed > before.failed {
			why = "  last: " + is.why
		}
		fmt.Fprintf(s.w, "%6d  %17d  %8d  %6d  %6d%s\n", second, is.acked-before.acked, is.admitted-before.admitted,
			is.denied-before.denied, is.failed-before.failed, why)
		if err := events.after(second, is.acked-before.acked); err != nil {
			return err
		}
		before = is
	}
	end()
	l.work.Wait()
	return s.conclude(ctx, l, time.Since(began))
}

// events has the state of the events that happen to the servers while they are called.
type events struct {
	*show
	*nodes
	killed string // address of the primary that was killed, or ""
	next   string // address of the next primary, or ""
	back   bool   // whether the next primary has acknowledged calls for a second
}

// pending reports whether the primary was killed and no other server has acknowledged calls since.
func (e *events) pending() bool { return e.killed != "" && !e.back }

// after carries out the event that is due after the given second, in which acked calls were
// acknowledged. The events are that the primary is killed, that the sentinels promote a replica,
// and that the killed server is started again.
func (e *events) after(second int, acked int64) error {
	switch {
	case e.next != "" && acked > 0:
		e.back = true
	case second == e.kill:
		e.killed = e.servers[0]
		fmt.Fprintf(e.w, "        kill -9 of the primary, %s\n", e.killed)
		return e.Kill(e.killed)
	case e.killed != "" && e.next == "":
		addr, err := e.primary()
		if err != nil || addr == e.killed {
			return err
		}
		e.next = addr
		fmt.Fprintf(e.w, "        the sentinels have made %s the primary. %s starts again, and will be its replica\n", addr, e.killed)
		return e.startServer(e.killed)
	}
	return nil
}

// conclude prints the number of acknowledged calls, the number of calls that the new primary has,
// and the longest time without an answer.
func (s *show) conclude(ctx context.Context, l *load, took time.Duration) error {
	stored, lost, err := l.check(ctx)
	if err != nil {
		return err
	}
	sum, away := l.now()
	fmt.Fprintf(s.w, "\nINCR: %d acknowledged, the counters add up to %d: %d lost, %d done without an acknowledgement.\n",
		sum.acked, stored, lost, stored-(sum.acked-lost))
	fmt.Fprintf(s.w, "CL.THROTTLE: %d admitted in %.1f s. The limit allows %d + %d x %.1f = %.0f.\n", sum.admitted, took.Seconds(),
		burst, perSecond, took.Seconds(), burst+perSecond*took.Seconds())
	fmt.Fprintf(s.w, "No call was answered for %.1f s, and %d calls failed.\n", away.Seconds(), sum.failed)
	return nil
}

// quiet drops the log of the client library, since connections to a killed server are expected to
// fail.
type quiet struct{}

// Printf implements the logger of the client library. It does nothing.
func (quiet) Printf(context.Context, string, ...any) {}
