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

// findBan sets l.banned and l.Denials. The error is that of the store.
func (d *Decider) findBan(l *Lookup) error {
	if l.banned, l.Denials, l.counting = 0, 0, false; l.Limits.Bans == nil || l.Quantity < 0 {
		return nil
	}
	a := d.banAsk(l, l.Limits, false, false)
	switch d.store.Decide(a); {
	case a.Err != nil && l.Applied.Block == nil && !l.lenient():
		return a.Err
	case a.Err != nil: // what is stored does not matter for the call
	case a.Decision.Refused > 0:
		l.banned = a.Decision.RetryAfter
	default:
		l.Denials = a.Decision.Limit - a.Decision.Remaining
	}
	return nil
}

// candidateBan returns the time for which the key of l is banned by limits, those of the policy's candidate, or 0.
func (d *Decider) candidateBan(l *Lookup, limits *policy.Limits) time.Duration {
	if limits.Bans == nil || l.Quantity < 0 || l.lenient() {
		return 0
	}
	a := d.banAsk(l, limits, false, true)
	if d.store.Decide(a); a.Err != nil || a.Decision.Refused == 0 {
		return 0
	}
	return a.Decision.RetryAfter
}

// countDenial counts that the call of l, which was decided, is denied, if the policy bans keys that are denied often.
// whole is the decision on it, and becomes that of a ban if one begins. The call is denied even if its denial cannot
// be counted, because memory is full or the log refuses changes.
func (d *Decider) countDenial(l *Lookup, whole *limit.Decision) {
	if !l.bans(whole) {
		return
	}
	a := d.banAsk(l, l.Limits, true, false)
	if d.store.Decide(a); a.Err == nil && a.Decision.Refused > 0 {
		beginBan(whole, &a.Decision)
	}
}

// bans reports whether the decision on the call counts for a ban: it denies the call, which takes units and is no
// exception.
func (l *Lookup) bans(d *limit.Decision) bool {
	return l.Limits.Bans != nil && l.Quantity > 0 && l.Mode != Peek && !l.lenient() && l.getsNothing(l.Limits, d)
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
	if !l.bans(&limit.Decision{Refused: 1}) {
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
