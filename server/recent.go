package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// recent is what INFO says of the last seconds, and of the time since the start. The janitor
// writes it; any goroutine may read it.
type recent struct {
	mu                sync.Mutex
	moved             transport.Stats    // at the last tick; guarded by mu, as are the others
	inRate, outRate   float64            // bytes a second, between the last two ticks
	inputs, outputs   [recentSlots]int64 // the largest buffers of each of the last ticks
	slot              int                // of the next tick
	startMem, peakMem int64              // what the process took at its start, and at most
	swept             atomic.Int64       // nanoseconds that the removal of expired keys took; not guarded
}

// recentSlots is for how many ticks the largest buffer of a client is shown, as in Redis.
const recentSlots = 8

// tick takes in what transports have moved by now, and the largest buffers of a client, at the
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

// started notes what the process takes before it loads anything.
func (r *recent) started(used int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startMem, r.peakMem = used, used
}

// traffic is what connections have moved and keep.
func (r *recent) traffic(now transport.Stats) stats.Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return stats.Traffic{
		In: now.BytesIn, Out: now.BytesOut, Reads: now.Reads, Writes: now.Writes, Pending: now.Pending + now.Unread,
		InPerSecond: r.inRate, OutPerSecond: r.outRate,
		LargestInput: slices.Max(r.inputs[:]), LargestOutput: slices.Max(r.outputs[:]),
	}
}

// memory is what the process took at its start, and at most.
func (r *recent) memory() (start, peak int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startMem, r.peakMem
}
