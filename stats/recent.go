package stats

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Recent has the figures of INFO about the last seconds, and some about the time since the start.
// Any goroutine may call its methods. The zero value is ready for use.
type Recent struct {
	mu                sync.Mutex
	in, out           int64              // bytes received and sent until the last tick; guarded by mu, as are the fields below
	inRate, outRate   float64            // rates between the last two ticks, in bytes per second
	inputs, outputs   [recentSlots]int64 // sizes in bytes of the largest buffers at each of the last ticks
	slot              int                // index in inputs and outputs for the next tick
	startMem, peakMem int64              // memory of the process in bytes: at its start, and the maximum since then
	swept             atomic.Int64       // time in nanoseconds that the removal of expired keys has taken; not guarded by mu
}

// recentSlots is the number of ticks over which the largest client buffer is shown, as in Redis.
const recentSlots = 8

// Tick records figures at the end of a period. now has the bytes since the start. input and output
// are the sizes of the largest client buffers in bytes, and used is the memory in use in bytes.
func (r *Recent) Tick(now Traffic, input, output, used int64, period time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inRate = float64(now.In-r.in) / period.Seconds()
	r.outRate = float64(now.Out-r.out) / period.Seconds()
	r.in, r.out = now.In, now.Out
	r.inputs[r.slot], r.outputs[r.slot] = input, output
	r.slot = (r.slot + 1) % recentSlots
	r.peakMem = max(r.peakMem, used)
}

// Started records used, the memory of the process in bytes at its start.
func (r *Recent) Started(used int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startMem, r.peakMem = used, used
}

// AddSwept adds the time that a removal of expired keys took.
func (r *Recent) AddSwept(took time.Duration) { r.swept.Add(int64(took)) }

// Traffic returns now, the present counters, with the rates and the largest buffers of the last
// seconds.
func (r *Recent) Traffic(now Traffic) Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	now.InPerSecond, now.OutPerSecond = r.inRate, r.outRate
	now.LargestInput, now.LargestOutput = slices.Max(r.inputs[:]), slices.Max(r.outputs[:])
	return now
}

// Measures returns the memory of the process at its start and its maximum since, and the time that
// the removal of expired keys has taken. SystemMemory is 0.
func (r *Recent) Measures() Measures {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Measures{StartMemory: r.startMem, PeakMemory: r.peakMem, ExpireTime: time.Duration(r.swept.Load())}
}
