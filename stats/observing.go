package stats

import (
	"math"
	"time"
)

// Observing is what the server keeps about calls, and who may call DEBUG.
type Observing struct {
	// SlowerThan is from which duration on a call enters SLOWLOG; none does if it is
	// negative. SlowEntries is how many entries there may be.
	SlowerThan  time.Duration
	SlowEntries int
	// Latency is from which duration on LATENCY keeps an event; 0 keeps none.
	Latency time.Duration
	// Histograms has durations counted by command, and Percentiles are those of them that
	// INFO shows.
	Histograms  bool
	Percentiles []float64
	Debug       DebugCommand
}

// DebugCommand says who may call DEBUG.
type DebugCommand uint8

// Nobody, clients on this machine, or everybody.
const (
	DebugNobody DebugCommand = iota
	DebugLocal
	DebugEverybody
)

// Least is from which duration on a call is more than a number.
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

// exactBelow is from which bound on a batch that exceeds it stands for its calls. Below, many
// short calls would exceed it together.
const exactBelow = time.Millisecond

// EveryCall reports whether every call has to be timed for that.
func (o *Observing) EveryCall() bool { return o.Least() < exactBelow }
