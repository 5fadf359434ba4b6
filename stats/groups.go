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

// GroupOptions say to which group a key belongs and which groups are counted.
type GroupOptions struct {
	// Delimiter is the text in a key that ends the name of its group; "" puts all keys into one
	// group.
	Delimiter string
	// Max is the maximum number of groups that are counted by name.
	Max int
	// Near is the percentage of a limit that must be exceeded for an allowed call to count as near
	// the limit; 0 stands for 80.
	Near int
}

// Groups counts decisions by group of keys. The group of a key is the part before the first
// delimiter. The first groups that have many calls are counted by name. All other groups are
// counted together, so that keys cannot make the memory grow. Any goroutine may use it, except for
// the lanes: see [GroupLane].
type Groups struct {
	delimiter string
	maxNamed  int
	near      atomic.Int64
	seed      maphash.Seed
	named     atomic.Int32 // number of groups that are counted by name

	mu      sync.Mutex
	names   []string         // the names of the groups from the number firstNamed on; only grows; guarded by mu
	waiting map[uint64]int64 // the calls of groups that are not counted by name yet, by the hash of their names; guarded by mu
	lanes   []*GroupLane     // the lanes of all workers; guarded by mu
}

// These are the numbers of the fixed groups, and of the first group with a name.
const (
	otherGroup = iota // the groups that are not counted by name
	noGroup           // the keys without a delimiter
	firstNamed
)

const (
	// namedAfter is about the number of calls after which a group is counted by name.
	namedAfter = 16
	// maxWaiting is the maximum number of groups in Groups.waiting. When there are more, waiting is
	// cleared, so that counting begins anew for all of them.
	maxWaiting = 4096
)

// GroupCount has the counts of one group of keys.
type GroupCount struct {
	Name string // name of the group: the result of [GroupName] for its keys
	// Label is a unique text for the name that is safe to show: a name that is not plain printable
	// text is quoted.
	Label  string
	Calls  int64
	Denied int64
	Near   int64 // number of allowed calls that were near their limit: see [GroupOptions].Near
}

// RetryBounds returns the upper bounds of the buckets of [Retries], in seconds.
func RetryBounds() []float64 { return []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600} }

const retryBuckets = 9

// Retries is a histogram of the times after which denied callers may try again. It does not have
// the denials for which waiting does not help.
type Retries struct {
	Counts [retryBuckets + 1]int64 // number of times in each bucket of [RetryBounds]; the last one is for longer times
	Sum    float64                 // sum of all times in seconds
}

// GroupLane has the counts of one worker. Only the worker's goroutine may use it, except for Reset.
// Counting does not allocate.
type GroupLane struct {
	Sampler
	all *Groups

	memo      []byte // the name of the group of the last counted call, with the delimiter; memoID is its number
	memoID    int
	names     []string    // the names of the groups that this lane knows, which are the first ones of all.names
	slots     []groupSlot // a hash table for finding a name in names
	batch     []GroupCount
	touched   []int
	denials   Retries // the waiting times of the batch; here Sum is in nanoseconds, which saves a division for each call
	anyDenial bool

	mu      sync.Mutex
	totals  []GroupCount // the published counts; guarded by mu, as is retries
	retries Retries
}

type groupSlot struct {
	hash uint64
	id   int // number of the group; 0 if the slot is free, since fixed groups are not in the table
}

// Outcome is the decision of a limiter about a call, in the form in which groups count it. Refused
// is not 0 if the call was denied.
type Outcome struct {
	Refused, Limit, Remaining int64
	RetryAfter                time.Duration // time after which the call may be repeated; negative if waiting does not help
}

// NewGroups returns counts without any lane. o says which groups are counted.
func NewGroups(o GroupOptions) *Groups {
	g := &Groups{delimiter: o.Delimiter, maxNamed: o.Max, seed: maphash.MakeSeed(), waiting: make(map[uint64]int64)}
	g.SetNear(o.Near)
	return g
}

// SetNear sets the percentage of a limit that must be exceeded for an allowed call to count as near
// the limit; 0 stands for 80.
func (g *Groups) SetNear(percent int) {
	if percent <= 0 {
		percent = 80
	}
	g.near.Store(int64(percent))
}

// label returns name, the name of a group, as a text that is safe to show and differs from the
// labels of all other groups and from the names of the fixed groups.
func label(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if name != "" && name != OtherGroups && name != NoGroup && utf8.ValidString(name) && strings.IndexFunc(name, odd) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// see counts calls of the group called name, which l does not know, and returns the number of the
// group. That is otherGroup until the group has had enough calls, and if as many groups as permitted
// are counted by name already. see also adds to l the groups that other lanes know.
func (g *Groups) see(l *GroupLane, name []byte, hash uint64, calls int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(l.names) < len(g.names) { // other lanes have given groups their names
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

// Snapshot returns the published counts of all groups that have calls: first those that are counted
// by name, then the fixed ones.
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

// Retries returns the published times after which denied callers may try again.
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
