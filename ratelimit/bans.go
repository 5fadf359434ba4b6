package ratelimit

import (
	"time"
	"unsafe"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// banAsk returns the ask about the bans of the key of l under limits, which have some. denied says that the call is
// denied, which counts. candidate says that the limits are those of the policy's candidate. The ask is d.bans.
func (d *Decider) banAsk(l *Lookup, limits *policy.Limits, denied, candidate bool) *decide.Ask {
	a := &d.bans
	a.Key = policy.AppendBanKey(a.Key[:0], l.Policy, l.state(), candidate)
	a.DB, a.Family, a.Err, a.Bans, a.Denied = l.DB, decide.Ban, nil, limits.Bans, denied
	return a
}

// banOf returns the time for which limits ban the key of l, or 0, and how many of its denials count for the next ban.
// candidate says that the limits are those of the policy's candidate. The error is that of the store.
func (d *Decider) banOf(l *Lookup, limits *policy.Limits, candidate bool) (left time.Duration, denials int64, err error) {
	if limits.Bans == nil {
		return 0, 0, nil
	}
	a := d.banAsk(l, limits, false, candidate)
	switch d.store.Decide(a); {
	case a.Err != nil:
		return 0, 0, a.Err
	case a.Decision.Refused > 0:
		return a.Decision.RetryAfter, 0, nil
	}
	return 0, a.Decision.Limit - a.Decision.Remaining, nil
}

// findBan sets l.banned. The error is that of the store, unless a block denies the call in any case.
func (d *Decider) findBan(l *Lookup) (err error) {
	if l.banned, l.counting = 0, false; l.Quantity < 0 || l.lenient() {
		return nil
	}
	if l.banned, _, err = d.banOf(l, l.Limits, false); l.Applied.Block != nil {
		return nil
	}
	return err
}

// candidateBan returns the time for which the candidate of the policy bans the key of l, or 0.
func (d *Decider) candidateBan(l *Lookup) time.Duration {
	if l.Quantity < 0 || l.lenient() {
		return 0
	}
	left, _, _ := d.banOf(l, l.Rules.Candidate.Limits, true) // an error is that of the candidate alone
	return left
}

// countDenial counts that the call of l, which was decided, is denied, if the policy bans keys that are denied often.
// whole is the decision on it, and becomes that of a ban if one begins. The call is denied even if its denial cannot
// be counted, because memory is full or the log refuses changes.
func (d *Decider) countDenial(l *Lookup, whole *limit.Decision) {
	if !l.bans(l.Limits, whole) {
		return
	}
	a := d.banAsk(l, l.Limits, true, false)
	if d.store.Decide(a); a.Err == nil && a.Decision.Refused > 0 {
		beginBan(whole, &a.Decision)
	}
}

// bans reports whether d, the decision by limits, counts for a ban: it denies the call, which takes units and is no
// exception.
func (l *Lookup) bans(limits *policy.Limits, d *limit.Decision) bool {
	return limits.Bans != nil && l.Quantity > 0 && l.Mode != Peek && !l.lenient() && l.getsNothing(limits, d)
}

// getsNothing reports whether d, the decision by limits, gives nothing to the call, which charges units.
func (l *Lookup) getsNothing(limits *policy.Limits, d *limit.Decision) bool {
	if l.Mode != Partial || d.Refused == 0 {
		return d.Refused > 0
	}
	n := l.Quantity
	if len(limits.Clauses) == 1 {
		n = l.quantity(0, &limits.Clauses[0])
	}
	return d.Refused >= n
}

// beginBan changes whole, the decision on a call that is denied, into that of the ban that begins with it.
func beginBan(whole, ban *limit.Decision) {
	if whole.RetryAfter != limit.NoRetry {
		whole.RetryAfter = max(whole.RetryAfter, ban.RetryAfter)
	}
	whole.ResetAfter = max(whole.ResetAfter, ban.RetryAfter)
}

// Denials counts, when a call that could have waited is denied, that its keys are. Only one goroutine at a time may
// use it. A nil Denials counts nothing.
type Denials struct {
	all []denial
}

// denial is what counts that a policy denies a call.
type denial struct {
	ask decide.Ask // owns its bytes
	// from and n say which clauses of the call are those of the policy. n is 0 if the call has no other.
	from, n int
}

// Denials returns what counts a denial of the call of l, or nil if its policy has no bans. [Decider.Answer] then does
// not count it.
func (d *Decider) Denials(l *Lookup) *Denials {
	var all Denials
	all.add(d, l, 0, 0)
	return all.orNil()
}

// DenialsOf is Denials for a call under several policies, which [Decider.AskAll] has prepared. [Decider.AnswerAll] then
// does not count it.
func (d *Decider) DenialsOf(parts []Part) *Denials {
	var all Denials
	for i := range parts {
		all.add(d, &parts[i].Lookup, parts[i].from, len(parts[i].Limits.Clauses))
	}
	return all.orNil()
}

func (x *Denials) add(d *Decider, l *Lookup, from, n int) {
	if !l.bans(l.Limits, &limit.Decision{Refused: 1}) {
		return
	}
	l.counting = true
	a := *d.banAsk(l, l.Limits, true, false)
	a.Own(nil)
	x.all = append(x.all, denial{a, from, n})
}

func (x *Denials) orNil() *Denials {
	if len(x.all) == 0 {
		return nil
	}
	return x
}

// Bytes returns about how many bytes of memory x keeps.
func (x *Denials) Bytes() (n int) {
	if x == nil {
		return 0
	}
	for i := range x.all {
		n += int(unsafe.Sizeof(denial{})) + len(x.all[i].ask.Key)
	}
	return n
}

// Keys calls f with each key that [Denials.Count] changes. The keys belong to x.
func (x *Denials) Keys(f func(key []byte)) {
	if x == nil {
		return
	}
	for i := range x.all {
		f(x.all[i].ask.Key)
	}
}

// Count counts the denial of a, the ask of the call, which was decided without an error. The decision on a becomes that
// of a ban if one begins. Count does nothing if a is not denied. The keys of [Denials.Keys] have to be locked if any
// keys are.
func (x *Denials) Count(st Store, a *decide.Ask) {
	if x == nil || a.Decision.Refused == 0 {
		return
	}
	for i := range x.all {
		is := &x.all[i]
		if is.n > 0 && !deniesAny(a.Details[is.from:is.from+is.n]) {
			continue
		}
		if st.Decide(&is.ask); is.ask.Err == nil && is.ask.Decision.Refused > 0 {
			beginBan(&a.Decision, &is.ask.Decision)
		}
	}
}
