// Package base has the parts that all transports share. These are [AcceptLoop], [Handshakes] for
// TLS, the unsent [Output] of a connection, and the meaning of limits. It does not depend on any
// transport.
package base

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"
)

// After a failed accept the next one waits. The usual cause is a lack of file descriptors, and
// trying again at once would occupy a core as long as that lasts.
const (
	minAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay = time.Second
)

// LingerBytes is the maximum number of bytes that a connection may send while it lingers: see
// [transport.Limits.Linger]. At most MaxLingering connections linger at once. Further ones are
// closed without waiting.
const (
	LingerBytes  = 4 << 20
	MaxLingering = 512
)

// StopLinger is the time for which a graceful stop reads and discards the input of a connection that
// it closes. Unread input would cause a reset, which discards replies.
const StopLinger = 10 * time.Millisecond

// AcceptLoop calls accept until stop is closed or accept returns [net.ErrClosed]. It returns nil in
// the first case and that error in the second. After every other error it adds 1 to failed and
// waits: 5 ms at first, and twice as long after each further error, up to 1 s.
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
