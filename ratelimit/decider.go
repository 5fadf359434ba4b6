package ratelimit

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
)

// Store decides asks at its present instant: see [decide.Ask]. It stores the effects, and puts the
// decision or an error into a.
type Store interface {
	Decide(a *decide.Ask)
}

// Service has what all deciders of a server share.
type Service struct {
	// Table returns the policies in force, or nil if the server has none.
	Table func() *policy.Table
	// Bounds returns the options that limit clauses.
	Bounds func() policy.Bounds
	// Keys has the statistics of keys.
	Keys *hotkeys.Keys
}

// Decider decides calls for one goroutine, which alone may use it.
type Decider struct {
	service *Service
	// Recorder records the decisions.
	*hotkeys.Recorder

	keys keys
	room clause.Room // a boosted clause
	// main and tried are the memory for the clauses of the limits in force and of a candidate.
	main, tried Clauses
	second      decide.Ask        // the ask of a candidate
	single      [1]limit.Decision // the details of an answer about one clause
}

// NewDecider returns a decider for one goroutine.
func (s *Service) NewDecider() *Decider {
	return &Decider{service: s, Recorder: s.Keys.NewRecorder()}
}

// Answer is the answer to a decided call.
type Answer struct {
	// Decision is the decision on the call as a whole: of several clauses that of the binding one.
	Decision limit.Decision
	// Details has the decision on each clause. It is valid until the next call.
	Details []limit.Decision
}

// Find looks up what applies to the key of call. The error is [ErrNoPolicy].
func (d *Decider) Find(call Call) (l Lookup, err error) {
	d.keys.begin(call.From.Volatile())
	l.Call = call
	if t := d.service.Table(); t != nil {
		l.Rules = t.Policy(call.Policy)
	}
	if l.Rules == nil {
		return l, ErrNoPolicy
	}
	l.Now = call.From.Now()
	l.Rules.Find(call.Key, l.Now, &l.Applied)
	l.Limits = l.Rules.InForce(&l.Applied)
	return l, nil
}

// Decide decides the call that l has looked up, with the ask a, which is a new one. st decides it at
// once; a call in the mode Block does not wait. The errors are those of [Decider.Ask] and of the
// store.
func (d *Decider) Decide(st Store, l *Lookup, a *decide.Ask) (Answer, error) {
	if l.Blocked() {
		return d.Deny(l, a), nil
	}
	if err := d.Ask(l, a); err != nil {
		return Answer{}, err
	}
	if st.Decide(a); a.Err != nil {
		return Answer{}, a.Err
	}
	tries := l.hasCandidate() && !l.Looks() && l.Mode != Block
	denied := tries && decisionOf(a).Refused != 0 // before an exemption or a shadow policy changes it
	answer := d.Answer(l, a)
	if tries {
		d.try(st, l, denied)
	}
	return answer, nil
}

// Deny answers a call that a block denies: the call and each of its clauses are denied until the
// block ends. Nothing is decided or charged. Deny counts the answer. It changes a.
func (d *Decider) Deny(l *Lookup, a *decide.Ask) Answer {
	d.main.Grow(len(l.Limits.Clauses))
	left := l.blockedFor()
	for i := range d.main.Details {
		d.main.Details[i] = limit.Decision{Refused: 1, Limit: d.limitOf(l, i), RetryAfter: left, ResetAfter: left}
	}
	if !l.Looks() {
		l.Rules.Counts.Blocked.Add(1)
	}
	if n := l.Counts(); n != nil {
		n.Answered(true)
	}
	a.Family = decide.Several
	d.Note(l.From, a, d.keys.add(l, 0, false), &d.main.Details[0])
	return Answer{d.main.Details[0], d.main.Details}
}

// limitOf returns the limit of clause i, counted from 0, as the answer shows it.
func (d *Decider) limitOf(l *Lookup, i int) int64 {
	l.Limits.Clauses[i].Boost(l.factor(), &d.room)
	switch d.room.Kind {
	case clause.Bucket:
		return d.room.Bucket.Capacity
	case clause.Window:
		return d.room.Window.Limit
	case clause.Lease:
		return d.room.Lease.Limit
	}
	return d.room.Quota.Limit()
}

// Answer returns the answer to the call after its ask a was decided without an error, and counts it.
// An exemption or a shadow policy turns a denial into a pass.
func (d *Decider) Answer(l *Lookup, a *decide.Ask) Answer {
	answer := d.answer(a)
	if l.lenient() {
		l.countLenient(answer.Decision.Refused != 0)
		pass(&answer.Decision)
		for i := range answer.Details {
			pass(&answer.Details[i])
		}
	}
	d.Record(l.From, a, &answer.Decision, l.Counts(), true)
	return answer
}

// decisionOf returns the decision on a as a whole, which for several clauses is that of the binding
// one.
func decisionOf(a *decide.Ask) limit.Decision {
	if a.Family == decide.Several {
		return a.Binding()
	}
	return a.Decision
}

// answer returns the decision on a, and those on its clauses.
func (d *Decider) answer(a *decide.Ask) Answer {
	if a.Family == decide.Several {
		return Answer{a.Binding(), a.Details}
	}
	d.single[0] = a.Decision
	return Answer{a.Decision, d.single[:]}
}

// pass changes a decision into that of a call that passes.
func pass(d *limit.Decision) { d.Refused, d.RetryAfter = 0, limit.NoRetry }

// countLenient counts a call that passes regardless of the decision. denied says whether the call
// would have been denied otherwise.
func (l *Lookup) countLenient(denied bool) {
	counts := l.Rules.Counts
	switch {
	case l.Looks():
	case l.Applied.Exempt != nil:
		counts.Exempted.Add(1)
		if denied {
			counts.ExemptedDenied.Add(1)
		}
	case denied:
		counts.ShadowDenied.Add(1)
	}
}

// AnswerClauses returns the answer to a call whose client has named the clauses, after the ask a was
// decided without an error, and counts it.
func (d *Decider) AnswerClauses(from hotkeys.Caller, a *decide.Ask) Answer {
	answer := d.answer(a)
	d.Record(from, a, &answer.Decision, nil, false)
	return answer
}

// Record counts the decision on a: in the counters n of a policy, unless n is nil, and in the
// statistics of the key or, for a [decide.Several], of the key of each clause. ofPolicy says that all
// clauses are of one policy.
func (d *Decider) Record(from hotkeys.Caller, a *decide.Ask, decision *limit.Decision, n *policy.Counts, ofPolicy bool) {
	if n != nil {
		n.Answered(decision.Refused != 0)
	}
	if a.Family == decide.Several {
		d.NoteClauses(from, a, ofPolicy)
		return
	}
	d.Note(from, a, a.Key, decision)
}

// try has st decide the call under the policy's candidate, and counts whether that decision agrees
// with the policy's. denied says whether the limits in force have denied the call. An error of the
// candidate counts as a denial.
func (d *Decider) try(st Store, l *Lookup, denied bool) {
	a := &d.second
	a.DB, a.Err, a.Foreign = l.DB, nil, 0
	refused := true
	if d.ask(l, l.Rules.Candidate.Limits, true, &d.tried, a) == nil {
		st.Decide(a)
		refused = a.Err != nil || decisionOf(a).Refused != 0
	}
	if l.Quantity < 0 {
		return
	}
	counts := l.Rules.Counts
	switch {
	case !denied && !refused:
		counts.TryBoth.Add(1)
	case !denied:
		counts.TryOnlyOld.Add(1)
	case !refused:
		counts.TryOnlyNew.Add(1)
	default:
		counts.TryNeither.Add(1)
	}
}

// EndBatch publishes what the calls of the batch have recorded, and frees the memory of long calls.
// now is the instant of the batch.
func (d *Decider) EndBatch(now limit.Instant) {
	d.Recorder.EndBatch(now)
	d.main.Trim()
	d.tried.Trim()
	d.second.Forget()
	if d.keys.endBatch() { // the clauses refer to the buffer
		clear(d.main.Clauses[:cap(d.main.Clauses)])
		clear(d.tried.Clauses[:cap(d.tried.Clauses)])
	}
}
