package ratelimit

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
)

// Store decides asks at the present instant of the store: see [decide.Ask]. It stores the effects,
// and sets the decision or the error in a.
type Store interface {
	Decide(a *decide.Ask)
}

// Policies are the policies of a server. Table returns the policies in force. Any goroutine may
// call it.
type Policies interface {
	Table() *policy.Table
}

// Service has the parts that all deciders of a server share.
type Service struct {
	// Policies is nil if the server has no policies.
	Policies Policies
	// Unread, if not nil, returns an error if the policies were not read yet.
	Unread func() error
	// Unreadable, if not nil, returns the reason why records of the policy with the given name cannot be read; nil if
	// they can. If there is a reason, pass says whether a call for the given key passes, as under a policy without
	// limits, or gets an error.
	Unreadable func(name, key []byte) (pass bool, why error)
	// Bounds returns the server's options that bound the limits.
	Bounds func() policy.Bounds
	// Keys has the statistics of keys.
	Keys *hotkeys.Keys
	// Notices delivers the notices about keys under policies with NOTIFY. It is nil on a server
	// without notices.
	Notices *Notices
}

// Decider decides calls. Only one goroutine may use it.
type Decider struct {
	// Recorder records the decisions.
	Recorder *hotkeys.Recorder

	steps
	joints joints
}

// NewDecider returns a decider for one goroutine, whose calls st decides.
func (s *Service) NewDecider(st Store) *Decider {
	return &Decider{steps: steps{service: s, store: st}, Recorder: s.Keys.NewRecorder()}
}

// Policy returns the policy called name, or nil if there is none.
func (s *Service) Policy(name []byte) *policy.Policy {
	if s.Policies == nil {
		return nil
	}
	return s.Policies.Table().Policy(name)
}

// NoPolicy returns the error of a call under a policy that the server does not have: [ErrNoPolicy], or the error of
// Unread.
func (s *Service) NoPolicy() error {
	if s.Unread != nil {
		if err := s.Unread(); err != nil {
			return err
		}
	}
	return ErrNoPolicy
}

// Answer is the answer to a decided call. It is valid until the next call.
type Answer struct {
	// Decision is the decision on the call as a whole. For several clauses it is the decision on
	// the binding clause.
	Decision *limit.Decision
	// Details has the decision of the limits on each clause, also if the call passes because of SHADOW or an
	// exemption. If there is only one clause, it may be nil, and then Decision is the decision on that clause.
	Details []limit.Decision
}

// Find sets the fields of l after its Call: the policy and the entries that apply to the key of the call. It also sets
// the member of a reservation that has none, and Keep of a call with a class. The errors are [ErrNoPolicy],
// [ErrNoClass], [ErrKeepDebt], [ErrKeepUnits], [ErrCount], [ErrNoAddress], [ErrWide] and those of the store.
func (d *Decider) Find(l *Lookup) error {
	d.keys.begin(l.Volatile)
	if err := d.findLimits(l); err != nil {
		return err
	}
	return d.findBan(l)
}

// findLimits sets the fields of l that do not depend on the state of the key. It returns the errors
// of [Decider.Find], without those of the store.
func (d *Decider) findLimits(l *Lookup) error {
	if l.reserves() && l.Member == nil {
		l.Member = l.ID.Token
	}
	l.Rules = d.service.Policy(l.Policy)
	if err := d.service.readable(l); err != nil {
		return err
	}
	if l.Rules == nil {
		var err error
		if l.Rules, err = d.service.ownOrNone(l); err != nil {
			return err
		}
	}
	if err := l.findKeep(); err != nil {
		return err
	}
	if l.counting() && (l.Mode == Partial || l.Mode >= Wait || l.reserves()) {
		return ErrCount
	}
	if err := d.findApplied(l); err != nil {
		return err
	}
	l.Limits = l.Rules.InForce(&l.Applied)
	l.findOwn()
	return nil
}

// Decide decides the call that l has looked up, and counts the answer. It uses a, which is decided at once: a call in
// the mode Block does not wait. It returns the errors of [Decider.Ask] and of the store.
func (d *Decider) Decide(l *Lookup, a *decide.Ask) (Answer, error) {
	if l.Blocked() {
		return d.deny(l, a), nil
	}
	var x outcome
	if err := d.decide(l, 0, a, &x); err != nil {
		return Answer{}, err
	}
	return d.counted(l, a, &x, &d.steps), nil
}

// counted counts x, the outcome of the steps s that have decided the call by the ask a, and returns
// the answer.
func (d *Decider) counted(l *Lookup, a *decide.Ask, x *outcome, s *steps) Answer {
	if x.free {
		d.countFree(l, &s.seldom.free)
	}
	d.countAnswer(l, a, x)
	if x.tries {
		d.countTrial(l, x.denied, x.trial)
	}
	return x.answer
}

// deny answers a call that a block denies: the call and each of its clauses are denied until the block
// ends. Nothing is decided or charged. deny counts the answer. It uses a for the statistics.
func (d *Decider) deny(l *Lookup, a *decide.Ask) Answer {
	d.main.Grow(len(l.Limits.Clauses))
	d.denyInto(l, a, d.main.Details)
	return Answer{&d.main.Details[0], d.main.Details}
}

// denyInto does what deny does, and also sets details to the decisions on the clauses.
func (d *Decider) denyInto(l *Lookup, a *decide.Ask, details []limit.Decision) {
	d.block(l, details)
	d.countBlocked(l, a, &details[0])
}

// block sets details to the decisions on the clauses of a call that a block denies.
func (s *steps) block(l *Lookup, details []limit.Decision) {
	for i := range details {
		details[i] = s.blocked(l, i)
	}
}

// countBlocked counts a call that a block denies. first is the decision on its first clause. It uses a.
func (d *Decider) countBlocked(l *Lookup, a *decide.Ask, first *limit.Decision) {
	switch {
	case l.Looks():
	case l.Applied.Block != nil:
		l.Rules.Counts.Blocked.Add(1)
	default:
		l.Rules.Counts.Banned.Add(1)
	}
	if n := l.Counts(); n != nil {
		n.Answered(true)
	}
	a.DB, a.Family, a.Foreign, a.ID.Token, a.Lapsed = l.DB, decide.Several, 0, nil, 0
	d.Recorder.Note(l.From, a, d.keys.add(l, 0, false), first)
}

// blocked returns the decision on clause i, counted from 0, of a call that a block denies.
func (s *steps) blocked(l *Lookup, i int) limit.Decision {
	return s.deniedUntil(l, i, l.deniedFor(l.banned))
}

// deniedUntil returns the decision on clause i, counted from 0, of a call that is denied for the time left.
func (s *steps) deniedUntil(l *Lookup, i int, left time.Duration) limit.Decision {
	return limit.Decision{Refused: 1, Limit: s.limitOf(l, i), RetryAfter: left, ResetAfter: left}
}

// limitOf returns the limit of clause i, counted from 0, with the boost of l, as an answer shows
// it. It overwrites s.room.
func (s *steps) limitOf(l *Lookup, i int) int64 {
	l.Limits.Clauses[i].Boost(l.factor(), &s.room)
	return s.room.Limit()
}

// Answer returns the answer to the call after its ask a was decided without an error, and counts it. An exemption or a
// shadow policy turns a denial into a pass; Details then has the decisions without it. Answer changes the decisions in
// a, too. The counters of the policy do not count the repetition of a call.
func (d *Decider) Answer(l *Lookup, a *decide.Ask) Answer {
	var x outcome
	d.conclude(l, a, &x)
	d.countAnswer(l, a, &x)
	return x.answer
}

// countAnswer counts the answer in x to the call that the ask a has decided, and delivers the notices about its key.
func (d *Decider) countAnswer(l *Lookup, a *decide.Ask, x *outcome) {
	counts := l.Counts()
	if a.Repeats() {
		counts = nil
	} else {
		if l.Lenient() {
			l.countLenient(x.denied)
		}
		if !l.waited {
			d.service.Notices.tell(l, l.Now, x.decided)
		}
	}
	d.Record(l.From, a, x.answer.Decision, counts, true)
}

// pass changes a decision into the decision on a call that passes.
func pass(d *limit.Decision) { d.Refused, d.RetryAfter = 0, limit.NoRetry }

// countLenient counts the call if an exemption lets it pass, or if a shadow policy turns a denial
// into a pass. A call that charges and returns nothing is not counted. denied says whether the limits
// deny the call.
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

// AnswerClauses returns the answer to a call whose client has named several clauses, after its ask a
// was decided without an error, and counts it.
func (d *Decider) AnswerClauses(from hotkeys.Caller, a *decide.Ask) Answer {
	answer := d.answer(a)
	d.Recorder.NoteClauses(from, a, false)
	return answer
}

// Record counts the decision on a in the counters n of a policy, unless n is nil, and in the
// statistics of keys. For a [decide.Several] it counts the decision on each clause under the key of
// the clause. ofPolicy says that all clauses are of one policy.
func (d *Decider) Record(from hotkeys.Caller, a *decide.Ask, decision *limit.Decision, n *policy.Counts, ofPolicy bool) {
	if n != nil {
		n.Answered(decision.Refused != 0)
	}
	if a.Family == decide.Several {
		d.Recorder.NoteClauses(from, a, ofPolicy)
		return
	}
	d.Recorder.Note(from, a, a.Key, decision)
}

// countTrial counts whether t, the decision of the policy's candidate, agrees with the decision of the limits in
// force. denied says whether the limits in force deny the call. Calls that return units are not counted.
func (d *Decider) countTrial(l *Lookup, denied bool, t trial) {
	d.service.Keys.NoteLapsed(t.lapsed)
	if l.Quantity < 0 {
		return
	}
	counts := l.Rules.Counts
	switch {
	case !denied && !t.refused:
		counts.TryBoth.Add(1)
	case !denied:
		counts.TryOnlyOld.Add(1)
	case !t.refused:
		counts.TryOnlyNew.Add(1)
	default:
		counts.TryNeither.Add(1)
	}
}

// EndBatch publishes the statistics of the batch, and frees the memory of calls with many clauses
// or long keys. now is the instant of the batch. It must be called when no ask of the batch is in
// use.
func (d *Decider) EndBatch(now limit.Instant) {
	d.Recorder.EndBatch(now)
	d.endBatch()
	d.joints.endBatch()
}
