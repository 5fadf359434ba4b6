package report

import (
	"sync"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/limit"
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

// group is what is remembered of a group of keys.
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
