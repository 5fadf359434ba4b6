package stats

import (
	"math"
	"time"
)

// Observing has the settings that say what the server records about calls, and which clients may
// call DEBUG.
type Observing struct {
	// SlowerThan is the minimum duration of a call in SLOWLOG; if it is negative, no call is
	// recorded. SlowEntries is the maximum number of entries.
	SlowerThan  time.Duration
	SlowEntries int
	// Latency is the minimum duration of an event in LATENCY; 0 means that no event is recorded.
	Latency time.Duration
	// Histograms says whether the durations of calls are counted by command. Percentiles are the
	// percentiles, from 0 to 100, that INFO latencystats shows.
	Histograms  bool
	Percentiles []float64
	Debug       DebugCommand
}

// DebugCommand says which clients may call DEBUG.
type DebugCommand uint8

// These are the values of DebugCommand: no client, the clients on this machine, or all clients.
const (
	DebugNone DebugCommand = iota
	DebugLocal
	DebugAll
)

// Least returns the minimum duration of a call or event that is recorded in SLOWLOG or LATENCY. It
// is the maximum of time.Duration if none is recorded.
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

// exactBelow is the bound of Least below which each call of a batch is timed individually. From
// exactBelow on, only the time of the whole batch is measured and compared with Least. With a lower
// Least, a batch of many short calls could exceed Least although none of the calls does.
const exactBelow = time.Millisecond

// EveryCall reports whether every call must be timed individually, because Least is below
// exactBelow.
func (o *Observing) EveryCall() bool { return o.Least() < exactBelow }
