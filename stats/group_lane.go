package stats

import (
	"hash/maphash"
	"math"
	"time"
)

// NewLane adds a lane for a new worker to g, and returns it.
func (g *Groups) NewLane() *GroupLane {
	l := &GroupLane{all: g, Sampler: NewSampler()}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes = append(g.lanes, l)
	return l
}

// Add counts a call on key with the outcome o, and the calls that it represents. It must be called
// if, and only if, [Sampler.Due] has returned true for the call.
func (l *GroupLane) Add(key []byte, o Outcome) { l.Count(key, o, l.Weight()) }

// Count adds a number of calls on key, which all had the outcome o, to the counts of the group of
// key.
func (l *GroupLane) Count(key []byte, o Outcome, calls int64) {
	n := l.count(l.group(key, calls))
	n.Calls += calls
	switch {
	case o.Refused != 0:
		n.Denied += calls
		l.denied(o.RetryAfter, calls)
	case nearLimit(o, l.all.near.Load()):
		n.Near += calls
	}
}

// nearLimit reports whether an allowed call has left less than 100-percent percent of its limit.
func nearLimit(o Outcome, percent int64) bool {
	if o.Limit <= math.MaxInt64/100 {
		return o.Remaining*100 < o.Limit*(100-percent)
	}
	return o.Remaining < o.Limit/100*(100-percent)
}

// denied adds the waiting time of denied calls to the histogram of the batch, unless waiting does
// not help. calls is the number of these calls. after is the waiting time of each of them; if it is
// negative, waiting does not help.
func (l *GroupLane) denied(after time.Duration, calls int64) {
	if after < 0 {
		return
	}
	bucket := retryBuckets
	for i, bound := range retryTimes {
		if after <= bound {
			bucket = i
			break
		}
	}
	l.anyDenial = true
	l.denials.Counts[bucket] += calls
	l.denials.Sum += float64(after) * float64(calls)
}

var retryTimes = func() (times [retryBuckets]time.Duration) {
	for i, seconds := range RetryBounds() {
		times[i] = time.Duration(seconds * float64(time.Second))
	}
	return times
}()

// group returns the number of the group of key. calls is the number of calls that are counted, by
// which a group may get its own count.
func (l *GroupLane) group(key []byte, calls int64) int {
	if n := len(l.memo); n > 0 && len(key) >= n && string(key[:n]) == string(l.memo) {
		return l.memoID
	}
	name, fixed := GroupOf(key, l.all.delimiter)
	switch fixed {
	case NoGroup:
		return noGroup
	case OtherGroups:
		return otherGroup
	}
	hash := maphash.Bytes(l.all.seed, name)
	id, known := l.find(name, hash)
	switch {
	case known:
	case len(l.names) >= l.all.maxNamed: // no further group gets a count of its own
		return otherGroup
	default:
		if id = l.all.see(l, name, hash, calls); id == otherGroup {
			return otherGroup
		}
	}
	l.memo, l.memoID = append(l.memo[:0], key[:len(name)+len(l.all.delimiter)]...), id
	return id
}

// count returns the counts of this batch for the group with that number.
func (l *GroupLane) count(id int) *GroupCount {
	if l.batch == nil {
		l.batch, l.touched = make([]GroupCount, firstNamed+l.all.maxNamed), make([]int, 0, firstNamed+l.all.maxNamed)
	}
	n := &l.batch[id]
	if n.Calls == 0 {
		l.touched = append(l.touched, id)
	}
	return n
}

// Publish ends a batch, and adds its counts to those that Snapshot and Retries return.
func (l *GroupLane) Publish() {
	l.EndBatch()
	if len(l.touched) == 0 {
		return
	}
	l.mu.Lock()
	if l.totals == nil {
		l.totals = make([]GroupCount, len(l.batch))
	}
	for _, id := range l.touched {
		sum, n := &l.totals[id], &l.batch[id]
		sum.Calls += n.Calls
		sum.Denied += n.Denied
		sum.Near += n.Near
		*n = GroupCount{}
	}
	l.touched = l.touched[:0]
	if l.anyDenial {
		l.anyDenial = false
		for i, n := range l.denials.Counts {
			l.retries.Counts[i] += n
		}
		l.retries.Sum += l.denials.Sum / float64(time.Second)
		l.denials = Retries{}
	}
	l.mu.Unlock()
}
