package ratelimit

import (
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/reservation"
)

// Store decides asks at the present instant of the store: see [decide.Ask]. It stores the effects,
// and sets the decision or the error in a.
type Store interface {
	Decide(a *decide.Ask)
}

// Policies are the policies of a server. Table returns those in force. Any goroutine may call it.
type Policies interface {
	Table() *policy.Table
}

// Service has the parts that all deciders of a server share.
type Service struct {
	// Policies is nil if the server has no policies.
	Policies Policies
	// Bounds returns the server's options that bound the limits.
	Bounds func() policy.Bounds
	// Keys has the statistics of keys.
	Keys *hotkeys.Keys
	// Notices tells of keys under policies with NOTIFY. It is nil if the server has none.
	Notices *Notices
}

// Decider decides calls. Only one goroutine may use it.
type Decider struct {
	// Recorder records the decisions.
	Recorder *hotkeys.Recorder

	service *Service
	store   Store
	keys    keys
	room    clause.Room // a boosted clause
	// main and tried are the memory for the clauses of the limits in force and of a candidate.
	main, tried clause.Memory
	second      decide.Ask     // the ask of a candidate, or of a reservation of nothing
	whole       limit.Decision // the decision of the last answer that is not in its ask
	// piece is the ask about one policy of a call under several. zeros are the quantities of a policy
	// that such a call leaves alone.
	piece decide.Ask
	zeros [policy.MaxClauses]int64
	// bans is the ask about the bans of a key, with the memory of its key.
	bans decide.Ask
	// kept has the decisions of the limits on the clauses of a call that passes although the limits may deny it.
	kept []limit.Decision
	// linked has the keys of a reservation of several policies, and spare the decisions of one of nothing.
	linked [][]byte
	spare  [policy.MaxClauses]limit.Decision
}

// NewDecider returns a decider for one goroutine, whose calls st decides.
func (s *Service) NewDecider(st Store) *Decider {
	return &Decider{service: s, store: st, Recorder: s.Keys.NewRecorder()}
}

// Policy returns the policy called name, or nil if there is none.
func (s *Service) Policy(name []byte) *policy.Policy {
	if s.Policies == nil {
		return nil
	}
	return s.Policies.Table().Policy(name)
}

// Answer is the answer to a decided call. It is valid until the next call.
type Answer struct {
	// Decision is the decision on the call as a whole: of several clauses that of the binding one.
	Decision *limit.Decision
	// Details has the decision of the limits on each clause, also if the call passes because of SHADOW or an
	// exemption. If there is only one clause, it may be nil, and then Decision is the decision on that clause.
	Details []limit.Decision
}

// Find sets the fields of l after its Call: what applies to the key of the call. It also sets the member of
// a reservation that has none, and Keep of a call with a class. The errors are [ErrNoPolicy], [ErrNoClass],
// [ErrKeepDebt], [ErrKeepUnits], [ErrCount], [ErrNoAddress], [ErrWide] and those of the store.
func (d *Decider) Find(l *Lookup) error {
	d.keys.begin(l.Volatile)
	return d.find(l)
}

// find does what Find does, for one of several calls that are decided together.
func (d *Decider) find(l *Lookup) error {
	if l.reserves() && l.Member == nil {
		l.Member = l.ID.Token
	}
	if l.Rules = d.service.Policy(l.Policy); l.Rules == nil {
		return ErrNoPolicy
	}
	if err := l.findKeep(); err != nil {
		return err
	}
	if l.Rules.Main.Count && (l.Mode == Partial || l.Mode >= Wait || l.reserves()) {
		return ErrCount
	}
	if err := d.findApplied(l); err != nil {
		return err
	}
	l.Limits = l.Rules.InForce(&l.Applied)
	return d.findBan(l)
}

// Decide decides the call that l has looked up, and counts the answer. It uses a, which is decided at
// once: a call in the mode Block does not wait. The errors are those of [Decider.Ask] and of the store.
func (d *Decider) Decide(l *Lookup, a *decide.Ask) (Answer, error) {
	if l.Blocked() {
		return d.deny(l, a), nil
	}
	if err := d.Ask(l, a); err != nil {
		return Answer{}, err
	}
	if d.store.Decide(a); a.Err != nil {
		return Answer{}, a.Err
	}
	if l.lenient() {
		d.reserveNothing(l, a)
	}
	if !l.hasCandidate() || l.Looks() || l.Mode == Block || a.Repeats() {
		return d.Answer(l, a), nil
	}
	denied := a.Whole().Refused != 0 // before a shadow policy changes it
	answer := d.Answer(l, a)
	d.try(l, denied)
	return answer, nil
}

// deny answers a call that a block denies: the call and each of its clauses are denied until the block
// ends. Nothing is decided or charged. deny counts the answer. It uses a for the statistics.
func (d *Decider) deny(l *Lookup, a *decide.Ask) Answer {
	d.main.Grow(len(l.Limits.Clauses))
	d.denyInto(l, a, d.main.Details)
	return Answer{&d.main.Details[0], d.main.Details}
}

// denyInto does what deny describes, and sets details to the decisions on the clauses.
func (d *Decider) denyInto(l *Lookup, a *decide.Ask, details []limit.Decision) {
	for i := range details {
		details[i] = d.blocked(l, i)
	}
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
	d.Recorder.Note(l.From, a, d.keys.add(l, 0, false), &details[0])
}

// blocked returns the decision on clause i, counted from 0, of a call that a block denies.
func (d *Decider) blocked(l *Lookup, i int) limit.Decision {
	return d.deniedUntil(l, i, l.deniedFor(l.banned))
}

// deniedUntil returns the decision on clause i, counted from 0, of a call that is denied as long as left says.
func (d *Decider) deniedUntil(l *Lookup, i int, left time.Duration) limit.Decision {
	return limit.Decision{Refused: 1, Limit: d.limitOf(l, i), RetryAfter: left, ResetAfter: left}
}

// limitOf returns the limit of clause i, counted from 0, with the boost of l, as an answer shows
// it. It overwrites d.room.
func (d *Decider) limitOf(l *Lookup, i int) int64 {
	l.Limits.Clauses[i].Boost(l.factor(), &d.room)
	return d.room.Limit()
}

// Answer returns the answer to the call after its ask a was decided without an error, and counts it.
// An exemption or a shadow policy turns a denial into a pass, and Details say what would have been. Answer changes the
// decisions in a, too.
// The counters of the policy do not count the repetition of a call.
func (d *Decider) Answer(l *Lookup, a *decide.Ask) Answer {
	answer := d.answer(a)
	decided := answer.Details
	switch notifies := l.Rules.Main.Notify > 0; {
	case decided == nil && (notifies || l.lenient()):
		decided = d.keep(0, *answer.Decision)
	case l.lenient():
		decided = d.keep(0, decided...)
	}
	if l.lenient() {
		if !a.Repeats() {
			l.countLenient(answer.Decision.Refused != 0)
		}
		pass(answer.Decision)
		passEach(answer.Details)
	}
	counts := l.Counts()
	if a.Repeats() {
		counts = nil
	} else if !l.waited {
		d.countDenial(l, answer.Decision)
		d.service.Notices.tell(l, l.Now, decided)
	}
	d.Record(l.From, a, answer.Decision, counts, true)
	if l.lenient() {
		answer.Details = decided
	}
	return answer
}

// keep copies all, decisions of the limits on clauses, to the memory of d from the index at on. The copies are valid
// until the next call.
func (d *Decider) keep(at int, all ...limit.Decision) []limit.Decision {
	end := at + len(all)
	if end > len(d.kept) {
		d.kept = make([]limit.Decision, max(end, policy.MaxClauses)) // copies from before stay where they are
	}
	copy(d.kept[at:], all)
	return d.kept[at:end:end]
}

// answer returns the decision on a, and those on its clauses.
func (d *Decider) answer(a *decide.Ask) Answer {
	if a.Family != decide.Several {
		return Answer{Decision: &a.Decision}
	}
	d.whole = a.Binding()
	return Answer{&d.whole, a.Details}
}

// pass changes a decision into that of a call that passes.
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

// try decides the call under the policy's candidate, and counts whether that decision agrees
// with the decision of the limits in force. denied says whether the limits in force deny the call.
// An error of the candidate counts as a denial. Calls that return units are not counted. A candidate
// charges the estimate of a reservation for good: nothing settles it there, so it does not remember the
// call either.
func (d *Decider) try(l *Lookup, denied bool) {
	if l.reserves() {
		was := l.Call
		l.Reserve, l.ID = reservation.Terms{}, idempotency.Call{}
		defer func() { l.Call = was }()
	}
	a := &d.second
	refused := true
	if limits := l.Rules.Candidate.Limits; d.candidateBan(l) == 0 && d.ask(l, limits, candidate, &d.tried, a) == nil {
		if d.store.Decide(a); a.Err == nil {
			d.service.Keys.NoteLapsed(a)
		}
		whole := a.Whole()
		refused = a.Err != nil || whole.Refused != 0
		if a.Err == nil && l.bans(limits, &whole) {
			d.store.Decide(d.banAsk(l, limits, true, true))
		}
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

// EndBatch publishes the statistics of the batch, and frees the memory of calls with many clauses
// or long keys. now is the instant of the batch. It must be called when no ask of the batch is in
// use.
func (d *Decider) EndBatch(now limit.Instant) {
	d.Recorder.EndBatch(now)
	d.main.Trim()
	if len(d.kept) > policy.MaxClauses {
		d.kept = nil
	}
	d.tried.Trim()
	d.second.Forget()
	d.piece.Forget()
	clear(d.linked[:cap(d.linked)])
	if d.keys.endBatch() {
		d.main.Forget()
		d.tried.Forget()
	}
}
