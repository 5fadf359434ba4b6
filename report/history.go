package report

// steps maps the length of a history to the length of its steps, in seconds.
var steps = [...]struct{ span, step int64 }{{300, 1}, {3600, 10}, {6 * 3600, 60}, {24 * 3600, 120}}

// MaxSpan is the length of the longest history, in seconds.
const MaxSpan = 24 * 3600

// History returns the history of the given number of seconds, at most [MaxSpan], before the last
// sample. It has at most 721 steps. Its Marks are the elements of marks from this time.
func (r *Recorder) History(seconds int64, marks []Change) History {
	seconds = min(max(1, seconds), MaxSpan)
	size := int64(0)
	for _, s := range steps {
		if size = s.step; seconds <= s.span {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := History{Step: size, Allowed: []int64{}, Denied: []int64{}, Errors: []int64{}, P50us: []float64{}, P99us: []float64{}, Marks: []Change{}}
	if r.last.At == 0 {
		return h
	}
	now := second(r.last.At)
	// Steps begin at multiples of their length, as in earlier requests, so that a chart does not
	// flicker.
	from := max(now-seconds, second(r.started)) / size
	for n := from; n <= now/size; n++ {
		s, any := r.sum(n*size, size)
		if !any && len(h.Allowed) == 0 {
			continue
		}
		if len(h.Allowed) == 0 {
			h.From = r.last.Civil - r.last.Civil%1000 - (now-n*size)*1000
		}
		h.Allowed, h.Denied, h.Errors = append(h.Allowed, s.allowed), append(h.Denied, s.denied), append(h.Errors, s.failed)
		h.P50us, h.P99us = append(h.P50us, float64(s.p50)), append(h.P99us, float64(s.p99))
	}
	for _, m := range marks {
		if m.At >= h.From {
			h.Marks = append(h.Marks, m)
		}
	}
	return h
}

// sums is like step, with more room for counts.
type sums struct {
	allowed, denied, failed int64
	p50, p99                float32
}

// sum adds up the size seconds from the second from on. p50 and p99 of s are maxima. any is false
// if the history has none of these seconds.
func (r *Recorder) sum(from, size int64) (s sums, any bool) {
	source, unit := r.seconds, int64(1)
	if size >= 60 {
		source, unit = r.minutes, 60
	}
	for n := from / unit; n < (from+size)/unit; n++ {
		t, ok := source.get(n)
		if !ok {
			continue
		}
		any = true
		s.allowed, s.denied, s.failed = s.allowed+int64(t.allowed), s.denied+int64(t.denied), s.failed+int64(t.failed)
		s.p50, s.p99 = max(s.p50, t.p50), max(s.p99, t.p99)
	}
	return s, any
}

// The usual ratio ignores the latest time, so that an incident does not become usual while it
// lasts.
const (
	usualLag = 6 * 60 // maximum number of the newest minutes that are ignored
	usualAge = 10     // number of minutes after the start before any ratio is usual
)

// usualRatio returns the median ratio of denied calls over the minutes of the last day. It ignores
// the newest minutes: three quarters of the uptime, at most six hours. It returns -1 in the first
// ten minutes and if there were no calls.
func (r *Recorder) usualRatio() float64 {
	start, now := second(r.started)/60, r.minutes.next-1
	age := now - start
	if age < usualAge {
		return -1
	}
	var ratios []float64
	for n := r.minutes.first; n <= now-min(usualLag, age*3/4); n++ {
		if t, ok := r.minutes.get(n); ok && t.allowed+t.denied > 0 {
			ratios = append(ratios, float64(t.denied)/float64(int64(t.allowed)+int64(t.denied)))
		}
	}
	return median(ratios)
}
