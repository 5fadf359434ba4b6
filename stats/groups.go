package stats

import (
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// GroupOptions define the group of a key.
type GroupOptions struct {
	// Delimiter ends the name of a group in a key; "" puts all keys into one group.
	Delimiter string
	// Max bounds the groups that are counted by name; 0 is none.
	Max int
	// Near is the percentage of a limit in use from which an allowed call counts as near it; 0 is
	// 80.
	Near int
}

// Groups counts decisions by group of keys: the part of a key before the first delimiter. The first
// groups with many calls have their own counts. All others are counted together, so that keys
// cannot make the memory grow. Any goroutine may use it.
type Groups struct {
	delimiter string
	maxNamed  int
	near      atomic.Int64
	seed      maphash.Seed
	named     atomic.Int32 // groups with their own count

	mu      sync.Mutex
	names   []string         // guarded by mu; only grows. The names of the groups from firstNamed on
	waiting map[uint64]int64 // guarded by mu: calls of groups without a count, by hash
	lanes   []*GroupLane     // guarded by mu
}

// The fixed groups, and the number of the first group with a name.
const (
	otherGroup = iota // groups without their own count
	noGroup           // keys without a delimiter
	firstNamed
)

const (
	// namedAfter is about how many calls a group has before it gets its own count.
	namedAfter = 16
	// maxWaiting bounds the groups without their own count that are counted separately until then.
	maxWaiting = 4096
)

// GroupCount has the counts of a group.
type GroupCount struct {
	Name string // as returned by [GroupName]
	// Label is the name as text that is safe to show, and unique: a name that is not plain
	// printable text is quoted.
	Label  string
	Calls  int64
	Denied int64
	Near   int64 // allowed calls that left little
}

// RetryBounds returns the upper bounds of the buckets of [Retries], in seconds.
func RetryBounds() []float64 { return []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600} }

const retryBuckets = 9

// Retries is a histogram of the waiting times that denied callers were told, if waiting would help.
type Retries struct {
	Counts [retryBuckets + 1]int64 // by bucket of [RetryBounds]; the last is for longer times
	Sum    float64                 // seconds
}

// GroupLane has the counts of one worker. Fields without a note belong to the worker's goroutine.
// Counting does not allocate.
type GroupLane struct {
	Sampler
	all *Groups

	memo      []byte // the group of the last counted call with the delimiter, and its number
	memoID    int
	names     []string    // of the groups that this lane knows: a prefix of all.names
	slots     []groupSlot // a hash table of them
	batch     []GroupCount
	touched   []int
	denials   Retries // of the batch; its Sum is in nanoseconds, which saves a division for each call
	anyDenial bool

	mu      sync.Mutex
	totals  []GroupCount // guarded by mu, like retries
	retries Retries
}

type groupSlot struct {
	hash uint64
	id   int // 0 is a free slot: the fixed groups are in no table
}

// Outcome is a decision as groups count it.
type Outcome struct {
	Refused, Limit, Remaining int64
	RetryAfter                time.Duration // negative: waiting does not help
}

// NewGroups returns empty counts.
func NewGroups(o GroupOptions) *Groups {
	g := &Groups{delimiter: o.Delimiter, maxNamed: o.Max, seed: maphash.MakeSeed(), waiting: make(map[uint64]int64)}
	g.SetNear(o.Near)
	return g
}

// SetNear sets the percentage of a limit in use from which an allowed call counts as near it.
func (g *Groups) SetNear(percent int) {
	if percent <= 0 {
		percent = 80
	}
	g.near.Store(int64(percent))
}

// label returns the name of a group as text that is safe to show and that differs from all other
// groups and fixed names.
func label(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if name != "" && name != OtherGroups && name != NoGroup && utf8.ValidString(name) && strings.IndexFunc(name, odd) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// see counts calls of a group without its own count, and returns the group's number: until it has
// had enough calls, that of the group of all others.
func (g *Groups) see(l *GroupLane, name []byte, hash uint64, calls int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(l.names) < len(g.names) { // other lanes have named them
		l.learn(g.names[len(l.names)])
	}
	if id, ok := l.find(name, hash); ok {
		return id
	}
	if len(g.names) >= g.maxNamed {
		return otherGroup
	}
	if g.waiting[hash] += calls; g.waiting[hash] < namedAfter {
		if len(g.waiting) > maxWaiting {
			clear(g.waiting)
		}
		return otherGroup
	}
	delete(g.waiting, hash)
	g.names = append(g.names, string(name))
	l.learn(g.names[len(g.names)-1])
	g.named.Store(int32(len(g.names)))
	return firstNamed + len(l.names) - 1
}

// Snapshot returns the groups with calls, those with a name first.
func (g *Groups) Snapshot() []GroupCount {
	g.mu.Lock()
	defer g.mu.Unlock()
	sums := make([]GroupCount, firstNamed+len(g.names))
	for _, l := range g.lanes {
		l.addTo(sums)
	}
	named := make([]GroupCount, 0, len(sums))
	for i, n := range sums[firstNamed:] {
		if n.Name, n.Label = g.names[i], label(g.names[i]); n.Calls > 0 {
			named = append(named, n)
		}
	}
	sums[noGroup].Name, sums[otherGroup].Name = NoGroup, OtherGroups
	for _, n := range []GroupCount{sums[noGroup], sums[otherGroup]} {
		if n.Label = n.Name; n.Calls > 0 {
			named = append(named, n)
		}
	}
	return named
}

// Retries returns the waiting times that denied callers were told.
func (g *Groups) Retries() (sum Retries) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.lanes {
		l.mu.Lock()
		for i, n := range l.retries.Counts {
			sum.Counts[i] += n
		}
		sum.Sum += l.retries.Sum
		l.mu.Unlock()
	}
	return sum
}
