// Package base has the parts that every transport needs.
// These are [AcceptLoop], [Handshakes] for TLS, the [Output] that a connection has not sent yet, and the
// meaning of limits. It knows no transport.
package base

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"
)

// After an accept that failed, for want of file descriptors most of all, the next
// one waits: trying again at once would burn a core for as long as the want lasts.
const (
	minAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay = time.Second
)

// A refused connection may send this much while it reads its rejection, for [transport.Limits.Linger];
// more than maxLingering of them at once are cut without waiting.
const (
	LingerBytes  = 4 << 20
	MaxLingering = 512
)

// StopLinger is how long a connection that a graceful stop closes is drained, so
// that unread input does not turn the close into a reset that eats replies.
const StopLinger = 10 * time.Millisecond

// AcceptLoop calls accept until stop is closed (nil) or the listener is (its
// error). Every other error is waited out, doubling from 5 ms to 1 s.
func AcceptLoop(accept func() error, stop <-chan struct{}, failed *atomic.Int64, log *slog.Logger) error {
	delay := time.Duration(0)
	for {
		err := accept()
		select {
		case <-stop:
			return nil
		default:
		}
		if err == nil {
			delay = 0
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		failed.Add(1)
		if delay == 0 {
			log.Warn("accepting connections fails, backing off", "error", err)
		}
		delay = nextDelay(delay)
		pause := time.NewTimer(delay)
		select {
		case <-stop:
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

func nextDelay(d time.Duration) time.Duration {
	if d == 0 {
		return minAcceptDelay
	}
	return min(2*d, maxAcceptDelay)
}
