package servers

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
)

// count is the number of live servers. Records expire while no server reaches the engine, so that the servers come back one
// after the other: after a beat that has failed, count does not decrease until each server had the time to write its
// record again. One goroutine calls seen and missed, and any may load n.
type count struct {
	n     atomic.Int64
	since limit.Instant // when the engine has answered again
	away  bool          // the latest beat has failed
}

// seen notes a beat at the instant now, which has shown n servers.
func (c *count) seen(n int64, now limit.Instant) {
	if c.away {
		c.since, c.away = now, false
	}
	if n >= c.n.Load() || now.Sub(c.since) >= Live {
		c.n.Store(n)
	}
}

// missed notes a beat that has failed.
func (c *count) missed() { c.away = true }
