package ratelimit

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// banAsk returns the ask about the bans of the key of l under limits, which must have a BAN. denied says that the call
// is denied, so that the ask counts a denial. candidate says that the limits are the limits of the policy's candidate.
// The ask is in the memory of s.rarely.
func (s *steps) banAsk(l *Lookup, limits *policy.Limits, denied, candidate bool) *decide.Ask {
	a := &s.rarely().bans
	a.Key = policy.AppendBanKey(a.Key[:0], l.Policy, l.state(), candidate)
	a.DB, a.Family, a.Err, a.Bans, a.Denied = l.DB, decide.Ban, nil, limits.Bans, denied
	return a
}

// banOf returns the time for which limits ban the key of l, or 0 without a ban, and the number of its denials that
// count towards the next ban. candidate says that the limits are the limits of the policy's candidate. It returns the
// error of the store.
func (s *steps) banOf(l *Lookup, limits *policy.Limits, candidate bool) (left time.Duration, denials int64, err error) {
	if limits.Bans == nil {
		return 0, 0, nil
	}
	a := s.banAsk(l, limits, false, candidate)
	switch s.store.Decide(a); {
	case a.Err != nil:
		return 0, 0, a.Err
	case a.Decision.Refused > 0:
		return a.Decision.RetryAfter, 0, nil
	}
	return 0, a.Decision.Limit - a.Decision.Remaining, nil
}

// findBan sets l.banned. It returns the error of the store, unless a block denies the call in any
// case.
func (s *steps) findBan(l *Lookup) (err error) {
	if l.banned, l.waited = 0, false; !l.bannable() {
		return nil
	}
	if l.banned, _, err = s.banOf(l, l.Limits, false); l.Applied.Block != nil {
		return nil
	}
	return err
}

// bannable reports whether a ban of the key would deny the call. It would not if the call gives units back, has an
// exemption, or is under a shadow policy.
func (l *Lookup) bannable() bool { return l.Quantity >= 0 && !l.Lenient() }

// candidateBan returns the time for which the candidate of the policy bans the key of l, or 0.
func (s *steps) candidateBan(l *Lookup) time.Duration {
	if !l.bannable() {
		return 0
	}
	left, _, _ := s.banOf(l, l.Rules.Candidate.Limits, true) // an error about the candidate does not fail the call
	return left
}

// countDenial counts the denial of the call of l if the policy bans keys that are denied often. whole is the decision
// on the call; if a ban begins, whole becomes the decision of the ban. If the denial cannot be counted, because memory
// is full or the log refuses changes, the call is denied nevertheless.
func (s *steps) countDenial(l *Lookup, whole *limit.Decision) {
	if !l.bans(l.Limits, whole) {
		return
	}
	a := s.banAsk(l, l.Limits, true, false)
	if s.store.Decide(a); a.Err == nil && a.Decision.Refused > 0 {
		beginBan(whole, &a.Decision)
	}
}

// bans reports whether d, the decision by limits, counts towards a ban: d denies the call, the call takes units, and
// neither an exemption nor a shadow policy lets it pass.
func (l *Lookup) bans(limits *policy.Limits, d *limit.Decision) bool {
	return limits.Bans != nil && l.Quantity > 0 && l.Mode != Peek && !l.Lenient() && l.getsNothing(limits, d)
}

// getsNothing reports whether the call charges units and d, the decision by limits, grants none of
// them.
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

// beginBan changes whole, the decision on a denied call, into the decision of the ban that begins with this call.
func beginBan(whole, ban *limit.Decision) {
	if whole.RetryAfter != limit.NoRetry {
		whole.RetryAfter = max(whole.RetryAfter, ban.RetryAfter)
	}
	whole.ResetAfter = max(whole.ResetAfter, ban.RetryAfter)
}
