package report

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/limit"
)

func second(at limit.Instant) int64 { return int64(at) / int64(time.Second) }

func micros(d time.Duration) float32 { return float32(d.Seconds() * 1e6) }

// recent returns the counts of the given number of seconds before the newest sample. over is the
// length of this time in seconds, at least 1; it is less than requested if the history is shorter.
// Reservations with the count 0 are left out.
func (r *Recorder) recent(seconds int64) (delta counted, over float64) {
	newest, ok := r.counters.get(r.counters.next - 1)
	if !ok {
		return counted{}, 1
	}
	from := max(r.counters.first, r.counters.next-1-seconds)
	oldest, _ := r.counters.get(from)
	for !oldest.is { // no sample came in that second, so a later one is the oldest
		from++
		oldest, _ = r.counters.get(from)
	}
	delta = counted{
		calls: newest.calls - oldest.calls, denied: newest.denied - oldest.denied, failed: newest.failed - oldest.failed,
		errors: newest.errors - oldest.errors,
		lost:   newest.lost - oldest.lost, logins: newest.logins - oldest.logins, full: newest.full - oldest.full,
		repeats: newest.repeats - oldest.repeats,
	}
	for i, c := range newest.reservations {
		if c.N -= countAt(oldest.reservations, i); c.N > 0 {
			delta.reservations = append(delta.reservations, c)
		}
	}
	for i := from; i < r.counters.next; i++ {
		if c, ok := r.counters.get(i); ok {
			delta.script = max(delta.script, c.script)
		}
	}
	return delta, float64(max(1, r.counters.next-1-from))
}

// latency returns the number of replies in the last ten seconds and percentiles of their durations;
// 0 if there are none.
func (r *Recorder) latency() (calls int64, p50, p99 time.Duration) {
	if r.last.Answers == nil {
		return 0, 0, 0
	}
	d, n := *r.last.Answers, second(r.last.At)
	if r.seconds.next-r.seconds.first >= window {
		d.Sub(&r.answers[(n+1)%window])
	}
	return d.Calls, d.Quantile(0.5), d.Quantile(0.99)
}

// civil converts the instant at to civil time, in Unix milliseconds. The instant 0 becomes 0. The
// caller holds mu.
func (r *Recorder) civil(at limit.Instant) int64 {
	if at == 0 {
		return 0
	}
	return r.last.Civil - r.last.At.Sub(at).Milliseconds()
}

// median returns the median of values, which it sorts; -1 if there are none. Of an even number of
// values it returns the larger of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return -1
	}
	slices.Sort(values)
	return values[len(values)/2]
}
