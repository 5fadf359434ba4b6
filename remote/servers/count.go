package servers

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
)

// count is the number of live servers. Records expire while no server reaches the engine, so that the servers come back
// one after the other: after a failed beat, count does not decrease until each server has had time to write its record
// again. One goroutine calls seen and missed, and any may load n.
type count struct {
	n     atomic.Int64
	since limit.Instant // the instant at which the engine answered again after a failure
	away  bool          // whether the latest beat has failed
}

// seen records a successful beat at the instant now, which has found n servers.
func (c *count) seen(n int64, now limit.Instant) {
	if c.away {
		c.since, c.away = now, false
	}
	if n >= c.n.Load() || now.Sub(c.since) >= Live {
		c.n.Store(n)
	}
}

// missed records a failed beat.
func (c *count) missed() { c.away = true }
