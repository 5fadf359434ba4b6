package hotkeys

import (
	"bytes"
	"sync"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/stats"
)

// Caller describes the call for which a decision was made. A [Recorder] asks it only about calls that
// it samples, and about calls that have found the state of another limit, while the call runs.
type Caller interface {
	// Describe sets Client and Command of d, and adds the arguments that give the limit. family is
	// the family of the ask that was decided for the call.
	Describe(d *Detail, family decide.Family)
	// Volatile reports whether the memory of the call's keys may be reused before the batch of the
	// call ends.
	Volatile() bool
	// Now returns the instant of the call.
	Now() limit.Instant
}

// Recorder records the decisions that one goroutine gets: it counts them by group of keys, and
// samples keys and calls for [Keys]. The samples of a batch of calls go into the tables when the
// batch ends. Only that goroutine may use a Recorder, except for the methods whose comments say
// otherwise.
type Recorder struct {
	keys   *Keys
	counts *stats.GroupLane
	// noted has the samples of the denied calls of this batch, and called has the samples of all
	// its calls.
	noted, called []notedKey
	details       []Detail // the details of sampled calls, to which samples refer by index
	denials       stats.Sampler
	calledOnce    bool // whether at least one call was sampled
	// untilCall is the number of calls to skip before the next one is sampled. untilDetail is the
	// number of sampled calls until the next one whose details are kept.
	untilCall, untilDetail int

	mu     sync.Mutex
	tables [kinds]topTable // the table of each Kind, which is the index; guarded by mu
	groups seenGroups      // the records about groups of keys; guarded by mu
}

const (
	// callsSample is the sampling rate of the table of calls: one call in 16, at random.
	callsSample = 16
	// detailSample is the sampling rate of details in long batches: one sampled call in 3.
	detailSample = 3
	// maxNoted is the number of samples in r.called at which they are moved into the tables before
	// the batch ends.
	maxNoted = 256
)

// callsRate is the sampling rate callsSample in the form that stats.Sampler takes.
var callsRate = stats.OneIn(callsSample)

// Note counts d, the decision on a under key, in the group of key. In a long batch it counts only a
// sample of the calls, each with the weight of the calls that it represents. Note also samples key
// for the tables: a part of the denials, and about one call in callsSample. key must stay valid
// until [Recorder.EndBatch], unless from is volatile.
func (r *Recorder) Note(from Caller, a *decide.Ask, key []byte, d *limit.Decision) {
	if r.counts.Due() {
		r.counts.Add(key, outcome(d))
	}
	if a.ID.Token != nil {
		r.NoteID(from, a)
	}
	r.keys.NoteLapsed(a.Lapsed)
	r.noteKey(from, a, key, d)
}

// NoteClauses does what [Recorder.Note] describes for each clause of a, a decided [decide.Several],
// but counts the call only once in each group of its keys. oneGroup says that all keys are in one
// group, as those of a policy are.
func (r *Recorder) NoteClauses(from Caller, a *decide.Ask, oneGroup bool) {
	if r.counts.Due() {
		r.countClauses(a, oneGroup, r.counts.Weight())
	}
	if a.ID.Token != nil {
		r.NoteID(from, a)
	}
	r.keys.NoteLapsed(a.Lapsed)
	for i := range a.Details {
		r.noteKey(from, a, a.Clauses[i].Key, &a.Details[i])
	}
}

// NoteWaited counts d, the decision on a call that has waited, in the group of key and publishes
// the count. key is in the database db, and now is the instant of the decision. If d is a denial,
// NoteWaited also adds it to the table of denied keys. The table of all calls does not include
// calls that have waited.
func (r *Recorder) NoteWaited(db int, key []byte, d *limit.Decision, now limit.Instant) {
	r.counts.Count(key, outcome(d), 1)
	r.counts.Publish()
	if d.Refused == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[Denied].add(&notedKey{key: key, db: db, weight: 1, hash: topHash(db, key)}, now, nil)
}

// LackedMemory counts, in the group of key, a call on key that was refused for lack of memory.
func (r *Recorder) LackedMemory(key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups.of(key, r.keys.delimiter).refused++
}

// countClauses counts the call that a has decided once in each group of its keys, with the weight
// calls. oneGroup says that all keys are in one group.
func (r *Recorder) countClauses(a *decide.Ask, oneGroup bool, calls int64) {
	if oneGroup {
		r.counts.Count(a.Clauses[0].Key, outcome(worst(a, 0, nil)), calls)
		return
	}
	delimiter := r.keys.delimiter
	if len(a.Details) > policy.MaxClauses {
		r.countManyClauses(a, delimiter, calls)
		return
	}
	for i := range a.Details {
		name, fixed := stats.GroupOf(a.Clauses[i].Key, delimiter)
		same := func(j int) bool {
			other, otherFixed := stats.GroupOf(a.Clauses[j].Key, delimiter)
			return fixed == otherFixed && string(name) == string(other)
		}
		first := true
		for j := 0; j < i && first; j++ {
			first = !same(j)
		}
		if first {
			r.counts.Count(a.Clauses[i].Key, outcome(worst(a, i, same)), calls)
		}
	}
}

// countManyClauses does what countClauses describes for a call of many clauses. It uses a map,
// because comparing each clause with all others would take seconds for the largest possible call.
func (r *Recorder) countManyClauses(a *decide.Ask, delimiter string, calls int64) {
	type group struct {
		name, fixed string
	}
	tells := make(map[group]int) // index of the clause that counts for each group
	for i := range a.Details {
		name, fixed := stats.GroupOf(a.Clauses[i].Key, delimiter)
		is := group{string(name), fixed}
		if at, known := tells[is]; !known || worse(&a.Details[i], &a.Details[at]) {
			tells[is] = i
		}
	}
	for _, i := range tells {
		r.counts.Count(a.Clauses[i].Key, outcome(&a.Details[i]), calls)
	}
}

// worse reports whether the decision o counts for a group in place of d: o is refused and d is not,
// or neither is refused and o leaves a smaller share of its limit.
func worse(o, d *limit.Decision) bool {
	left := func(d *limit.Decision) float64 { return float64(d.Remaining) / float64(max(1, d.Limit)) }
	return d.Refused == 0 && (o.Refused != 0 || left(o) < left(d))
}

// worst returns the decision that counts for a group: a refused one if there is any, and otherwise
// the one that leaves the smallest share of its limit. It considers clause i of a, and those later
// clauses j for which in(j) is true; a nil in admits all of them.
func worst(a *decide.Ask, i int, in func(j int) bool) *limit.Decision {
	d := &a.Details[i]
	for j := i + 1; j < len(a.Details) && d.Refused == 0; j++ {
		if o := &a.Details[j]; worse(o, d) && (in == nil || in(j)) {
			d = o
		}
	}
	return d
}

// noteKey samples key for the tables. It also counts the call if the call has found the state of
// another limit.
func (r *Recorder) noteKey(from Caller, a *decide.Ask, key []byte, d *limit.Decision) {
	if a.Foreign != 0 {
		r.noteMixed(from, a, key)
	}
	if d.Refused != 0 && r.denials.Due() {
		r.noteDenied(from, a, key, d)
	}
	if r.untilCall--; r.untilCall < 0 {
		r.noteCalled(from, a, key, d)
	}
}

// noteMixed counts the call of a if it has found the state of another limit under key, and calls
// the warning function of [New] if a warning is due.
func (r *Recorder) noteMixed(from Caller, a *decide.Ask, key []byte) {
	if a.Family == decide.Several && !bytes.Equal(key, a.Clauses[a.Foreign-1].Key) {
		return
	}
	if calls, warn := r.keys.mixed.note(a.DB, key, from.Now()); warn {
		r.keys.warn(calls)
	}
}

// noteDenied adds key to r.noted with the weight of the sample. It keeps the details of the first
// sample of a batch, and of some later samples that stand for several calls.
func (r *Recorder) noteDenied(from Caller, a *decide.Ask, key []byte, d *limit.Decision) {
	k := noted(from, a.DB, key, r.denials.Weight())
	if len(r.noted) == 0 || k.weight > 1 && r.detailDue() {
		k.is = r.detailed(from, a.Family, d)
	}
	r.noted = append(r.noted, k)
}

// noteCalled adds key to r.called as a sample of callsSample calls, and draws how many calls to
// skip until the next sample. The first call of r is always a sample, and stands for one call, so
// that RL.TOP shows something from then on. If there are maxNoted samples, noteCalled moves them
// into the tables.
func (r *Recorder) noteCalled(from Caller, a *decide.Ask, key []byte, d *limit.Decision) {
	weight := int64(callsSample)
	if !r.calledOnce {
		r.calledOnce, weight = true, 1
	}
	r.untilCall = r.denials.Skip(callsRate)
	k := noted(from, a.DB, key, weight)
	switch {
	case r.counts.Exact():
		k.is, k.like = r.detailed(from, a.Family, d), weight
	case r.detailDue():
		k.is, k.like = r.detailed(from, a.Family, d), weight*detailSample
	}
	r.called = append(r.called, k)
	if len(r.called) >= maxNoted { // a script may make any number of calls, so the samples are moved early
		r.Flush(from.Now())
	}
}

// detailDue reports whether the details of the present sample are to be kept, which is so for one
// sample in detailSample. It advances the countdown. Keeping the details is the most expensive part
// of a sample.
func (r *Recorder) detailDue() bool {
	r.untilDetail--
	if r.untilDetail > 0 {
		return false
	}
	r.untilDetail = detailSample
	return true
}

// detailed adds the details of a call to r.details and returns their index. from describes the
// call, f is the family of its ask, and d its decision.
func (r *Recorder) detailed(from Caller, f decide.Family, d *limit.Decision) int {
	n := len(r.details)
	if n < cap(r.details) {
		r.details = r.details[:n+1]
	} else {
		r.details = append(r.details, Detail{})
	}
	is := &r.details[n]
	is.length, is.limit, is.retry = 0, 0, int64(d.RetryAfter)
	from.Describe(is, f)
	return n
}

// noted returns a sample of key without details. It copies key if the memory of key may be reused
// before the batch ends.
func noted(from Caller, db int, key []byte, weight int64) notedKey {
	if from.Volatile() {
		key = bytes.Clone(key)
	}
	return notedKey{key: key, db: db, is: -1, weight: weight}
}

// Flush moves the samples of the batch into the tables and the statistics of groups. now is the
// instant at which they count.
func (r *Recorder) Flush(now limit.Instant) {
	if len(r.noted) == 0 && len(r.called) == 0 {
		return
	}
	r.mu.Lock()
	r.tables[Denied].locate(r.noted)
	r.tables[Calls].locate(r.called)
	for i := range r.noted {
		k := &r.noted[i]
		r.groups.of(k.key, r.keys.delimiter).denied.Add(k.hash)
		r.tables[Denied].add(k, now, r.detailOf(k))
	}
	for i := range r.called {
		k := &r.called[i]
		is := r.detailOf(k)
		if is != nil {
			r.groups.of(k.key, r.keys.delimiter).called(is, k.like)
		}
		r.tables[Calls].add(k, now, is)
	}
	r.mu.Unlock()
	clear(r.noted) // the samples are cleared, because their keys refer to the input of the batch
	clear(r.called)
	r.noted, r.called, r.details = r.noted[:0], r.called[:0], r.details[:0]
}

// detailOf returns the details of the sample k, or nil if they were not kept.
func (r *Recorder) detailOf(k *notedKey) *Detail {
	if k.is < 0 {
		return nil
	}
	return &r.details[k.is]
}

// EndBatch publishes the counts and samples of the batch. The keys of the batch need not stay valid
// after it. now is the instant of the batch.
func (r *Recorder) EndBatch(now limit.Instant) {
	r.Flush(now)
	r.denials.EndBatch()
	r.counts.Publish()
}

// Decay halves the counts of all keys, so that earlier calls count less than recent ones. It must
// be called once a minute. Any goroutine may call it.
func (r *Recorder) Decay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.tables {
		r.tables[i].halve()
	}
}

// Reset sets the counts of keys, and the counts of decisions by group of keys, to 0. Any goroutine
// may call it.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.tables {
		r.tables[i].reset()
	}
	r.counts.Reset()
}

// outcome returns d in the form that the counts of groups take.
func outcome(d *limit.Decision) stats.Outcome {
	return stats.Outcome{Refused: d.Refused, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter}
}
