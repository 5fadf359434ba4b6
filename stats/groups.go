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

// GroupOptions say which group a key belongs to.
type GroupOptions struct {
	// Delimiter ends the name of a group in a key; "" puts all keys into one group.
	Delimiter string
	// Max is how many groups are counted by name; 0 is none.
	Max int
	// Near is from which percentage of a limit in use an allowed call is near it; 0 is 80.
	Near int
}

// Groups counts decisions by group of keys: what stands before the first delimiter. The first
// groups that many calls were about have counts of their own. All others are counted together,
// so that no key makes this grow. Any goroutine may use it.
type Groups struct {
	delimiter string
	most      int
	near      atomic.Int64
	seed      maphash.Seed
	named     atomic.Int32 // how many groups have a count of their own

	mu      sync.Mutex
	names   []string         // guarded by mu; only grows. Of the groups from firstNamed on
	waiting map[uint64]int64 // guarded by mu: calls of groups without a count, by hash
	lanes   []*GroupLane     // guarded by mu
}

// The groups that are always there, and the number of the first that has a name.
const (
	otherGroup = iota // those without a count of their own
	noGroup           // keys without a delimiter
	firstNamed
)

const (
	// namedAfter is about how many calls a group has to be in before it has a count of its own.
	namedAfter = 16
	// maxWaiting is how many groups without a count are told apart.
	maxWaiting = 4096
)

// GroupCount is what is known of a group.
type GroupCount struct {
	Name string // as [GroupName] says
	// Label is the name as text that is safe to show, and different for different groups:
	// whatever is more than plain printable text is in quotes.
	Label  string
	Calls  int64
	Denied int64
	Near   int64 // allowed with little left
}

// RetryBounds are the upper bounds of the times that denied callers are told to wait, in
// seconds.
func RetryBounds() []float64 { return []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600} }

const retryBuckets = 9

// Retries is how long denied callers were told to wait, if there was anything to wait for.
type Retries struct {
	Counts [retryBuckets + 1]int64 // by bucket of [RetryBounds], the last for what is beyond
	Sum    float64                 // seconds
}

// GroupLane is what one worker counts. What has no note is the worker's alone. Counting
// allocates nothing.
type GroupLane struct {
	Sampler
	all *Groups

	memo      []byte // the group of the last call that was counted and the delimiter, and its number
	memoID    int
	names     []string    // of the groups that this lane knows, a beginning of all.names
	slots     []groupSlot // a table of them, by hash
	batch     []GroupCount
	touched   []int
	denials   Retries // of the batch; its Sum is nanoseconds, which cost no division for each call
	anyDenial bool

	mu      sync.Mutex
	totals  []GroupCount // guarded by mu, as is retries
	retries Retries
}

type groupSlot struct {
	hash uint64
	id   int // 0 is a free slot: no table has the other groups
}

// Outcome is a decision as groups count it.
type Outcome struct {
	Refused, Limit, Remaining int64
	RetryAfter                time.Duration // negative: there is nothing to wait for
}

// NewGroups returns counts of no call.
func NewGroups(o GroupOptions) *Groups {
	g := &Groups{delimiter: o.Delimiter, most: o.Max, seed: maphash.MakeSeed(), waiting: make(map[uint64]int64)}
	g.SetNear(o.Near)
	return g
}

// SetNear changes from which percentage of a limit in use an allowed call is near it.
func (g *Groups) SetNear(percent int) {
	if percent <= 0 {
		percent = 80
	}
	g.near.Store(int64(percent))
}

// label returns the name of a group as text that is safe to show, and that no other group and
// none of the fixed names has.
func label(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if name != "" && name != OtherGroups && name != NoGroup && utf8.ValidString(name) && strings.IndexFunc(name, odd) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// see notes calls of a group without a count, and returns its number: that of all others until
// there were enough.
func (g *Groups) see(l *GroupLane, name []byte, hash uint64, calls int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(l.names) < len(g.names) { // others have named them
		l.learn(g.names[len(l.names)])
	}
	if id, ok := l.find(name, hash); ok {
		return id
	}
	if len(g.names) >= g.most {
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

// Snapshot returns the groups that were called, those with a name first.
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

// Retries returns how long denied callers were told to wait.
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
