package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// recent has the figures of INFO about the last seconds, and about the time since the start. The
// janitor writes it, and any goroutine may read it.
type recent struct {
	mu                sync.Mutex
	moved             transport.Stats    // at the last tick; guarded by mu, like the fields below
	inRate, outRate   float64            // bytes per second between the last two ticks
	inputs, outputs   [recentSlots]int64 // the largest buffers at each of the last ticks
	slot              int                // index for the next tick
	startMem, peakMem int64              // memory of the process at its start, and its maximum
	swept             atomic.Int64       // nanoseconds that the removal of expired keys took; not guarded
}

// recentSlots is the number of ticks over which the largest client buffer is shown, as in Redis.
const recentSlots = 8

// tick records the transport's counters, the largest client buffers and the memory in use, at the
// end of a period.
func (r *recent) tick(now transport.Stats, input, output, used int64, period time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inRate = float64(now.BytesIn-r.moved.BytesIn) / period.Seconds()
	r.outRate = float64(now.BytesOut-r.moved.BytesOut) / period.Seconds()
	r.moved = now
	r.inputs[r.slot], r.outputs[r.slot] = input, output
	r.slot = (r.slot + 1) % recentSlots
	r.peakMem = max(r.peakMem, used)
}

// started records the memory of the process before it loads anything.
func (r *recent) started(used int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startMem, r.peakMem = used, used
}

// traffic returns the network figures.
func (r *recent) traffic(now transport.Stats) stats.Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return stats.Traffic{
		In: now.BytesIn, Out: now.BytesOut, Reads: now.Reads, Writes: now.Writes, Pending: now.Pending + now.Unread,
		InPerSecond: r.inRate, OutPerSecond: r.outRate,
		LargestInput: slices.Max(r.inputs[:]), LargestOutput: slices.Max(r.outputs[:]),
	}
}

// memory returns the memory of the process at its start, and its maximum.
func (r *recent) memory() (start, peak int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startMem, r.peakMem
}
