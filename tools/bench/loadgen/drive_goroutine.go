package loadgen

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// driveGoroutines runs every connection on a goroutine of its own. It works on every system. Its
// pace is as fine as the timers of the system.
func driveGoroutines(l *worker) error {
	errs := make([]error, len(l.flows))
	var wait sync.WaitGroup
	for i := range l.flows {
		wait.Go(func() {
			c := blockingFlow{worker: l, flow: l.flows[i], conn: l.sessions[i].conn}
			if l.pace != nil {
				c.pace = l.paces[i]
			}
			errs[i] = c.loop()
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// blockingFlow is a flow and a connection whose reads and writes block.
type blockingFlow struct {
	*worker
	flow *flow
	conn net.Conn
	pace *pace
}

func (c *blockingFlow) loop() error {
	for {
		now := c.clock()
		if c.pace == nil {
			c.flow.batch(now)
		} else if err := c.schedule(now); err != nil {
			return err
		}
		if c.abandoned.Load() || c.flow.finished(c.over(c.pace, now)) {
			return nil
		}
		if err := c.exchange(); err != nil {
			if c.abandoned.Load() {
				return nil
			}
			return err
		}
	}
}

// schedule encodes the requests that are due, and limits the next exchange to the time until the
// next request.
func (c *blockingFlow) schedule(now int64) error {
	for c.pace.next() <= now && !c.over(c.pace, now) && c.flow.left > 0 && c.flow.waiting.len() < maxWaiting {
		c.flow.follow(c.pace, now)
	}
	until := min(max(c.pace.next(), now+int64(shortWait)), now+int64(longWait))
	// Both clocks are read anew each time. A difference between them that was measured once is wrong for the whole run if
	// the goroutine was interrupted between the two readings, and then every deadline may have passed.
	return c.conn.SetDeadline(time.Now().Add(time.Duration(until - now)))
}

// exchange writes the encoded requests and does one read. In an open loop both end at the deadline
// that schedule has set.
func (c *blockingFlow) exchange() error {
	if len(c.flow.out) > 0 {
		n, err := c.conn.Write(c.flow.out)
		c.flow.wrote(n)
		if err != nil && !isTimeout(err) {
			return err
		}
	}
	in := c.flow.room()
	n, err := c.conn.Read(in)
	c.flow.got(n)
	switch {
	case n > 0:
		return c.flow.receive(c.clock())
	case isTimeout(err) && c.pace != nil:
		return nil
	}
	return err
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
