package stats

import (
	"math"
	"time"
)

// Observing has the options of what the server records about calls, and of which clients may call DEBUG.
type Observing struct {
	// SlowerThan is the least duration of a call in SLOWLOG; a negative one records no call.
	// SlowEntries is the greatest number of entries.
	SlowerThan  time.Duration
	SlowEntries int
	// Latency is the least duration of an event in LATENCY; 0 records no event.
	Latency time.Duration
	// Histograms is whether durations are counted by command. Percentiles are those that INFO shows.
	Histograms  bool
	Percentiles []float64
	Debug       DebugCommand
}

// DebugCommand is the clients that may call DEBUG.
type DebugCommand uint8

// No client, clients on this machine, or all clients.
const (
	DebugNone DebugCommand = iota
	DebugLocal
	DebugAll
)

// Least returns the shortest duration for which more than a count is recorded.
func (o *Observing) Least() time.Duration {
	least := time.Duration(math.MaxInt64)
	if o.SlowerThan >= 0 && o.SlowEntries > 0 {
		least = o.SlowerThan
	}
	if o.Latency > 0 {
		least = min(least, o.Latency)
	}
	return least
}

// exactBelow is the threshold from which a batch is timed as a whole and represents its calls. With
// a lower threshold many short calls together could exceed it.
const exactBelow = time.Millisecond

// EveryCall reports whether the thresholds require timing every call.
func (o *Observing) EveryCall() bool { return o.Least() < exactBelow }
