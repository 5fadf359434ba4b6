package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// recent has the figures of INFO about the last seconds, and some about the time since the start.
// The janitor writes them, and any goroutine may read them.
type recent struct {
	mu                sync.Mutex
	moved             transport.Stats    // counters at the last tick; guarded by mu, as are the fields below
	inRate, outRate   float64            // in bytes per second, between the last two ticks
	inputs, outputs   [recentSlots]int64 // the largest buffers at each of the last ticks
	slot              int                // the index in inputs and outputs for the next tick
	startMem, peakMem int64              // memory of the process at its start, and its maximum since
	swept             atomic.Int64       // the time in nanoseconds that the removal of expired keys took; not guarded
}

// recentSlots is the number of ticks over which the largest client buffer is shown, as in Redis.
const recentSlots = 8

// tick records figures at the end of a period. now has the counters of the transport. input and
// output are the sizes of the largest client buffers in bytes, and used is the memory in use in
// bytes.
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

// started records used, the memory of the process in bytes at its start.
func (r *recent) started(used int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startMem, r.peakMem = used, used
}

// traffic returns the network figures. now are the present counters of the transport.
func (r *recent) traffic(now transport.Stats) stats.Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return stats.Traffic{
		In: now.BytesIn, Out: now.BytesOut, Reads: now.Reads, Writes: now.Writes, Pending: now.Pending + now.Unread,
		InPerSecond: r.inRate, OutPerSecond: r.outRate,
		LargestInput: slices.Max(r.inputs[:]), LargestOutput: slices.Max(r.outputs[:]),
	}
}

// memory returns, in bytes, the memory of the process at its start and its maximum since.
func (r *recent) memory() (start, peak int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startMem, r.peakMem
}
