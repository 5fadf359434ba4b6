package report

import (
	"sync"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Sizes of the history.
const (
	secondSteps = 3600
	minuteSteps = 1440
	groupSteps  = 360
	groupStep   = 10 // seconds
	// maxGroups is how many groups have a history: those of which there are metrics, at most.
	maxGroups = 202
	// window is the seconds that rates are of, and longWindow those that counts of rare
	// things are of.
	window     = 10
	longWindow = 300
)

// Recorder remembers samples: what happened in each second of the last hour, in each minute
// of the last day, and in each ten seconds of the last hour for each group. That takes at
// most 2 MiB. One goroutine adds samples; any may ask.
type Recorder struct {
	mu      sync.Mutex
	started limit.Instant
	last    Sample
	seconds *ring[step]
	minutes *ring[step]
	// counters are what was counted at the end of each of the last seconds.
	counters *ring[counted]
	answers  [window]stats.Distribution // at the end of each of the last seconds
	scripts  stats.Distribution
	groups   map[string]*group
	// total is what was counted since the start, and base what of that before the last reset.
	total, base counted
	changed     func(kind, text, group string)
	failing     map[string]limit.Instant // checks that fail, and since when
	faulty      limit.Instant            // since when the state is not kept
	full        limit.Instant            // since when calls lack memory
	lacking     string                   // the group that does most
	code        string                   // the first word of most errors
}

// counted are counters at the end of a second, and how long the slowest script took in it.
type counted struct {
	is                                                bool // a sample came in the second
	calls, denied, failed, errors, lost, logins, full int64
	script                                            float32 // microseconds
}

// group is the history of a group of keys.
type group struct {
	name string
	// total is what was counted since the start, and base what of that before the last reset.
	total, base GroupSample
	started     limit.Instant
	steps       *ring[groupTime]
	// recent are the counters at the end of each of the last seconds.
	recent *ring[GroupSample]
	denied *ring[stats.Sketch] // of the keys that were denied, a minute each
	limits limits
}

// groupTime is what happened in a step of a group.
type groupTime struct{ allowed, denied uint32 }

// limits follow which limit most calls of a group ask for.
type limits struct {
	text    string // the limit of most calls, in words
	args    string
	command string
	rate    float64
	was     string
	wasRate float64
	changed limit.Instant // 0 if it has not
	before  float64       // the ratio of denied calls before that, -1 if it is not known
	counts  map[string]int64
	calls   map[string]stats.SeenCall
	total   int64
	began   limit.Instant // when the first of these calls was seen
}

// NewRecorder returns a recorder of a server that starts now. It calls changed for changes that
// it infers from calls; changed must not call the recorder.
func NewRecorder(now limit.Instant, changed func(kind, text, group string)) *Recorder {
	return &Recorder{
		started: now, changed: changed,
		seconds: newRing[step](secondSteps), minutes: newRing[step](minuteSteps), counters: newRing[counted](longWindow + 1),
		groups: make(map[string]*group), failing: make(map[string]limit.Instant),
	}
}

// Add takes the next sample. The Recorder keeps it.
func (r *Recorder) Add(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := second(s.At)
	if r.last.At == 0 {
		r.last.At, r.last.Resets = s.At, s.Resets
	}
	if s.Resets != r.last.Resets {
		r.beginAgain()
	}
	before := r.total
	r.total.grow(&r.base, &s)
	now := r.total
	r.addStep(n, second(r.last.At), ended{now.calls - before.calls, now.denied - before.denied, now.failed - before.failed}, s.Answers)
	if s.Scripts != nil {
		latest := *s.Scripts
		latest.Sub(&r.scripts)
		now.script = float32(latest.Max().Seconds() * 1e6)
		r.scripts = *s.Scripts
	}
	*r.counters.at(n) = now
	r.addGroups(n, &s)
	r.noteCode(&s)
	r.last = s
	r.note(s.At)
}

// noteCode keeps the first word of most errors of the last second in which there were some.
func (r *Recorder) noteCode(s *Sample) {
	most := int64(0)
	for code, n := range s.Codes {
		if more := n - r.last.Codes[code]; more > most || more == most && more > 0 && code < r.code {
			most, r.code = more, code
		}
	}
}

// beginAgain takes note that all counters were reset: what they had counted is added to what
// they will.
func (r *Recorder) beginAgain() {
	r.base = r.total
	r.answers, r.scripts = [window]stats.Distribution{}, stats.Distribution{}
	for _, g := range r.groups {
		g.base = g.total
	}
}

// grow sets what was counted since the start. A call may be known to fail before it counts,
// and one that waited may be taken back: a counter that is a little less than before stays.
func (c *counted) grow(base *counted, s *Sample) {
	c.is = true
	c.calls, c.denied, c.failed = max(c.calls, base.calls+s.Calls), max(c.denied, base.denied+s.Denied), max(c.failed, base.failed+s.Failed)
	c.errors, c.lost = max(c.errors, base.errors+s.Errors), max(c.lost, base.lost+s.ClientsLost)
	c.logins, c.full = max(c.logins, base.logins+s.FailedLogins), max(c.full, base.full+s.OutOfMemory)
}

// ended are calls of limiters, and how many of them were denied, or answered with an error.
type ended struct{ calls, denied, failed int64 }

// part is one of several parts.
func (e ended) part(parts, part int64) ended {
	return ended{share(e.calls, parts, part), share(e.denied, parts, part), share(e.failed, parts, part)}
}

// addStep adds what happened since the last sample, evenly over the seconds if a few were
// missed.
func (r *Recorder) addStep(n, last int64, all ended, answers *stats.Distribution) {
	var p50, p99 float32
	if answers != nil {
		latest := *answers
		latest.Sub(&r.answers[max(0, last)%window])
		p50, p99 = micros(latest.Quantile(0.5)), micros(latest.Quantile(0.99))
		for i := last + 1; i < n && i < last+window; i++ {
			r.answers[i%window] = r.answers[max(0, last)%window]
		}
		r.answers[n%window] = *answers
	}
	from := n
	if n > last && n-last <= window {
		from = last + 1
	}
	parts := n - from + 1
	for i := from; i <= n; i++ {
		part := i - from
		e := all.part(parts, part)
		for _, to := range []*step{r.seconds.at(i), r.minutes.at(i / 60)} {
			to.allowed += uint32(max(0, e.calls-e.denied-e.failed))
			to.denied += uint32(e.denied)
			to.failed += uint32(e.failed)
			to.p50, to.p99 = p50, max(to.p99, p99)
		}
	}
}

// share is the part of a sum that comes to one of several seconds.
func share(sum, parts, part int64) int64 { return sum*(part+1)/parts - sum*part/parts }

// note keeps since when something is wrong.
func (r *Recorder) note(now limit.Instant) {
	keep := func(since *limit.Instant, is bool) {
		switch {
		case !is:
			*since = 0
		case *since == 0:
			*since = now
		}
	}
	keep(&r.faulty, r.last.Fault != "")
	recent, _ := r.recent(window)
	keep(&r.full, recent.full > 0)
	if r.full == 0 {
		r.lacking = ""
	}
	for _, c := range r.checks() {
		switch _, known := r.failing[c.ID]; {
		case c.OK:
			delete(r.failing, c.ID)
		case !known:
			r.failing[c.ID] = now
		}
	}
}
