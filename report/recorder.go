package report

import (
	"slices"
	"sync"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// These are the sizes of the history.
const (
	secondSteps = 3600
	minuteSteps = 1440
	groupSteps  = 360
	groupStep   = 10 // length of a step of the history of a group, in seconds
	// maxGroups is the number of groups with a history: the maximum number of groups with metrics.
	maxGroups = 202
	// window is the number of seconds over which rates are computed, and longWindow the number of
	// seconds for counts of rare events.
	window     = 10
	longWindow = 300
)

// Recorder keeps the history of samples: of each second of the last hour, of each minute of the
// last day, and for each group of each ten seconds of the last hour. This takes at most 2 MiB. One
// goroutine adds samples; all other methods are safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	started limit.Instant
	last    Sample
	seconds *ring[step]
	minutes *ring[step]
	// counters has the counters at the end of each of the last seconds.
	counters *ring[counted]
	answers  [window]stats.Distribution // the distribution of durations at the end of each of the last seconds
	scripts  stats.Distribution
	groups   map[string]*group
	// total has the counts since the start. base is the part of them from before the last reset.
	total, base counted
	changed     func(kind, text, group string)
	failing     map[string]limit.Instant // the checks that fail, with the instant since which each fails
	faulty      limit.Instant            // the instant since which the state cannot be persisted; 0 if it can be
	full        limit.Instant            // the instant since which calls have lacked memory; 0 if they have not
	lacking     string                   // the group to which most of the calls that lacked memory belong
	code        string                   // the first word of the most frequent errors; "" before the first
}

// counted has the counters at the end of a second, and the duration of the slowest script in it.
type counted struct {
	is                                                bool // whether a sample came in the second
	calls, denied, failed, errors, lost, logins, full int64
	script                                            float32 // duration of the slowest script in microseconds
	repeats                                           int64
	reservations                                      []Count // the counts of the events of reservations; never changed in place
}

// group is the history of a group of keys.
type group struct {
	name string
	// total has the counts since the start. base is the part of them from before the last reset.
	total, base GroupSample
	started     limit.Instant
	steps       *ring[groupTime]
	// recent has the counters at the end of each of the last seconds.
	recent *ring[GroupSample]
	denied *ring[stats.Sketch] // sketches of the denied keys, one for each minute
	limits limits
}

type groupTime struct{ allowed, denied uint32 }

// limits determines the limit of most calls of a group, and when it changes.
type limits struct {
	text    string // the limit of most calls, in words
	args    string
	command string
	rate    float64
	was     string
	wasRate float64
	changed limit.Instant // the instant at which the limit of most calls has changed; 0 if it has not
	before  float64       // the ratio of denied calls before the change; -1 if it is not known
	counts  map[string]int64
	calls   map[string]stats.SeenCall
	total   int64
	began   limit.Instant // the instant at which the first of the calls in counts was seen
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

// Add adds s, the newest sample, to the history, and infers from it which changes were made and
// what is wrong.
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

// noteCode stores the first word of the most frequent errors since the last sample, if there were
// errors.
func (r *Recorder) noteCode(s *Sample) {
	most := int64(0)
	for code, n := range s.Codes {
		if more := n - r.last.Codes[code]; more > most || more == most && more > 0 && code < r.code {
			most, r.code = more, code
		}
	}
}

// beginAgain handles a reset of all counters: the counts so far are added to later ones.
func (r *Recorder) beginAgain() {
	r.base = r.total
	r.answers, r.scripts = [window]stats.Distribution{}, stats.Distribution{}
	for _, g := range r.groups {
		g.base = g.total
	}
}

// grow updates the counts since the start. A failure may be counted before its call, and a call
// that waited may be withdrawn, so a counter that is a little lower than before stays as it was.
func (c *counted) grow(base *counted, s *Sample) {
	c.is = true
	c.calls, c.denied, c.failed = max(c.calls, base.calls+s.Calls), max(c.denied, base.denied+s.Denied), max(c.failed, base.failed+s.Failed)
	c.errors, c.lost = max(c.errors, base.errors+s.Errors), max(c.lost, base.lost+s.ClientsLost)
	c.logins, c.full = max(c.logins, base.logins+s.FailedLogins), max(c.full, base.full+s.OutOfMemory)
	c.repeats = max(c.repeats, base.repeats+s.Repeats)
	before := c.reservations
	c.reservations = slices.Clone(s.Reservations)
	for i := range c.reservations {
		n := &c.reservations[i].N
		*n = max(countAt(before, i), countAt(base.reservations, i)+*n)
	}
}

// countAt returns the number at an index of list, or 0 if list is too short.
func countAt(list []Count, i int) int64 {
	if i >= len(list) {
		return 0
	}
	return list[i].N
}

// ended counts calls of limiters, and how many of them were denied or answered with an error.
type ended struct{ calls, denied, failed int64 }

// part divides e into nearly equal parts, as many as parts says, and returns the one with the index
// part.
func (e ended) part(parts, part int64) ended {
	return ended{share(e.calls, parts, part), share(e.denied, parts, part), share(e.failed, parts, part)}
}

// addStep adds all, the calls since the last sample, to the history. n is the second of the new
// sample and last that of the last one. If samples were missed, addStep distributes the calls
// evenly over the seconds between.
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

// share divides sum into nearly equal integers, as many as parts says, and returns the one with the
// index part.
func share(sum, parts, part int64) int64 { return sum*(part+1)/parts - sum*part/parts }

// note updates the times at which the present faults began: the state cannot be persisted, memory
// is lacking, or checks fail.
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
