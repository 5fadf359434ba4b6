package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram divides each power of two of nanoseconds into stepsPerOctave buckets of the same
// width, so the width of a bucket is at most a sixteenth of its lower bound. The first bucket has
// all durations below 2^leastOctave ns. The last bucket also has all durations from 2^endOctave ns
// (34 s) on.
const (
	stepBits       = 4
	stepsPerOctave = 1 << stepBits
	leastOctave    = 6
	endOctave      = 35
	bucketCount    = 1 + (endOctave-leastOctave)*stepsPerOctave
)

// Class says how long a command is expected to take.
type Class uint8

// These are the classes of commands: those with the flag fast, all others, and those that run
// scripts.
const (
	Fast Class = iota
	Slow
	Script
	Classes // the number of classes
)

// String returns the name of the class in the metrics.
func (c Class) String() string { return [Classes]string{"fast", "slow", "script"}[c] }

// Histogram counts calls by their duration. The zero value is empty. Any goroutine may use it.
type Histogram struct {
	counts [bucketCount]atomic.Int64
	sum    atomic.Int64 // time in nanoseconds that all calls took together
}

// Add counts a number of calls, given by calls, each of which took d.
func (h *Histogram) Add(d time.Duration, calls int64) {
	h.counts[bucketOf(d)].Add(calls)
	h.sum.Add(int64(d) * calls)
}

// Reset sets all counts to zero.
func (h *Histogram) Reset() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
	h.sum.Store(0)
}

// bucketOf returns the index of the bucket that has calls which took d.
func bucketOf(d time.Duration) int {
	if d < 1<<leastOctave {
		return 0
	}
	octave := bits.Len64(uint64(d)) - 1
	if octave >= endOctave {
		return bucketCount - 1
	}
	return 1 + (octave-leastOctave)*stepsPerOctave + int(uint64(d)>>(octave-stepBits))&(stepsPerOctave-1)
}

// bucketEnd returns the exclusive upper bound of the bucket with the index i. The last bucket also
// has all longer calls.
func bucketEnd(i int) time.Duration {
	octave, step := leastOctave+(i-1)/stepsPerOctave, (i-1)%stepsPerOctave
	if i == 0 {
		return 1 << leastOctave
	}
	return time.Duration(stepsPerOctave+step+1) << (octave - stepBits)
}

// Distribution is the sum of histograms at one moment. Calls is the number of calls, and Sum the
// time that they took together.
type Distribution struct {
	Calls  int64
	Sum    time.Duration
	counts [bucketCount]int64
}

// Add adds the present counts of h to d.
func (d *Distribution) Add(h *Histogram) {
	for i := range h.counts {
		if n := h.counts[i].Load(); n != 0 {
			d.counts[i] += n
			d.Calls += n
		}
	}
	d.Sum += time.Duration(h.sum.Load())
}

// Merge adds the counts of o to d.
func (d *Distribution) Merge(o *Distribution) {
	for i := range d.counts {
		d.counts[i] += o.counts[i]
	}
	d.Calls += o.Calls
	d.Sum += o.Sum
}

// Sub subtracts earlier, an earlier sum of the same histograms, from d. If a histogram was reset
// since then, Sub subtracts nothing.
func (d *Distribution) Sub(earlier *Distribution) {
	for i := range d.counts {
		if d.counts[i] < earlier.counts[i] {
			return
		}
	}
	for i := range d.counts {
		d.counts[i] -= earlier.counts[i]
	}
	d.Calls -= earlier.Calls
	d.Sum -= earlier.Sum
}

// Below returns the number of calls that took less than limit. The result is exact if limit is the
// lower bound of a bucket, such as a power of two of nanoseconds from 64 ns to 2^34 ns. Otherwise
// it includes all calls in the bucket of limit.
func (d *Distribution) Below(limit time.Duration) (calls int64) {
	for i, n := range d.counts {
		if i > 0 && bucketEnd(i-1) >= limit {
			break
		}
		calls += n
	}
	return calls
}

// Quantile returns the q-quantile of the durations, for q from 0 to 1, rounded up to the end of its
// bucket. Durations above 34 s count as 34 s. The result is 0 if there are no calls.
func (d *Distribution) Quantile(q float64) time.Duration {
	if d.Calls == 0 {
		return 0
	}
	rank := max(1, int64(math.Ceil(q*float64(d.Calls))))
	seen := int64(0)
	for i, n := range d.counts {
		if seen += n; seen >= rank {
			return bucketEnd(i)
		}
	}
	return bucketEnd(bucketCount - 1)
}

// Max returns the end of the last bucket that has a call; 0 if there are no calls.
func (d *Distribution) Max() time.Duration {
	for i := bucketCount - 1; i >= 0; i-- {
		if d.counts[i] > 0 {
			return bucketEnd(i)
		}
	}
	return 0
}
