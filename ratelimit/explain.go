package ratelimit

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Explanation says how a call would be answered now, and why.
type Explanation struct {
	Lookup
	// Decision is the decision with which the call would be answered.
	Decision limit.Decision
	// Banned is the rest of the ban of the key, or 0. Calls pass nevertheless under an exemption or SHADOW. Denials is
	// the number of denials of the key that count for its next ban.
	Banned  time.Duration
	Denials int64
	// WouldBe is the decision without SHADOW and the exemption of the key. It is nil if there is neither.
	WouldBe *limit.Decision
	// Clauses has the decision on each clause of the limits in force, regardless of a block, an
	// exemption or a shadow policy.
	Clauses []Explained
	// Candidate has the decision on each clause of the policy's candidate. It is nil if the
	// candidate would not decide the call, or if CandidateErr, the error of these decisions, is not
	// nil.
	Candidate    []Explained
	CandidateErr error
}

// Explained is a clause of an [Explanation].
type Explained struct {
	// Text is the clause in the syntax of RL.MULTI. Millis says that its durations are in
	// milliseconds.
	Text   string
	Millis bool
	// State is the key of the clause's state.
	State    []byte
	Decision limit.Decision
	// Keep is the number of units that the call leaves for others.
	Keep int64
	// Retained has the reservations and the remembered calls of that key.
	Retained decide.Retained
}

// explainMember is the name of the member in calls that Explain has decided. Explain only peeks, so
// the member gets no place of a concurrency limit.
var explainMember = []byte("\x00RL.EXPLAIN")

// banned makes c a clause that denies the call because of a ban that ends after the time left.
func (c *Explained) banned(left time.Duration) {
	d := &c.Decision
	if never := d.Refused > 0 && d.RetryAfter == limit.NoRetry; !never {
		d.RetryAfter = max(d.RetryAfter, left)
	}
	d.Refused, d.ResetAfter = max(d.Refused, 1), max(d.ResetAfter, left)
}

// Tries reports whether the candidate of the policy would decide the call, too.
func (e *Explanation) Tries() bool { return e.hasCandidate() }

// Explain returns the answer that call would get, with the reasons. It changes nothing and counts nothing. It returns
// the errors of [Decider.Find], [ErrQuantities], [ErrPlaces], [limit.ErrOverflow], [slidingwindow.ErrLogTooLong] and
// those of the store.
func (d *Decider) Explain(call Call) (e Explanation, err error) {
	e.Call = call
	l := &e.Lookup
	l.Mode, l.Member = Peek, explainMember
	if err = d.Find(l); err != nil {
		return e, err
	}
	if !l.fits(l.Limits) {
		return e, ErrQuantities
	}
	if e.Clauses, e.Decision, err = d.look(l, l.Limits, 0, &d.main); err != nil {
		return e, err
	}
	if l.Quantity >= 0 {
		e.Banned, e.Denials, _ = d.banOf(l, l.Limits, false) // Find has returned this error already, if it is about the call
	}
	switch {
	case l.Blocked():
		e.Decision = d.blocked(l, 0)
	case l.Lenient():
		would := e.Decision
		if left := l.deniedFor(e.Banned); left != 0 && l.Quantity >= 0 {
			would = d.deniedUntil(l, 0, left)
		}
		e.WouldBe = &would
		pass(&e.Decision)
	}
	if e.Tries() {
		e.Candidate, _, e.CandidateErr = d.look(l, l.Rules.Candidate.Limits, candidate, &d.rarely().tried)
		if left := d.candidateBan(l); left > 0 {
			for i := range e.Candidate {
				e.Candidate[i].banned(left)
			}
		}
	}
	return e, nil
}

// look returns the decisions on all clauses of limits, which it does not charge, and the decision on
// all of them together. It uses the memory of m.
func (d *Decider) look(
	l *Lookup, limits *policy.Limits, h how, m *clause.Memory,
) (all []Explained, whole limit.Decision, err error) {
	a := &decide.Ask{DB: l.DB}
	if err := d.several(l, limits, h, m, a); err != nil {
		return nil, whole, err
	}
	a.Retained = make([]decide.Retained, len(a.Clauses))
	if d.store.Decide(a); a.Err != nil {
		return nil, whole, a.Err
	}
	for i := range a.Details {
		all = append(all, Explained{
			Text: limits.Text[i], Millis: limits.Millis, State: bytes.Clone(a.Clauses[i].Key), Decision: a.Details[i],
			Keep: a.Clauses[i].Keep, Retained: a.Retained[i],
		})
	}
	return all, a.Binding(), nil
}

// Entry returns the entry of the policy that decides about the key, with the name of its kind:
// "exemption", "block" or "override". If the key is banned, entry is nil and name is "ban". If the limits of the policy
// itself apply, entry is nil and name is "default".
func (e *Explanation) Entry() (name string, entry *policy.Entry) {
	switch a := &e.Applied; {
	case a.Exempt != nil:
		return "exemption", a.Exempt
	case a.Block != nil:
		return "block", a.Block
	case e.banned > 0:
		return "ban", nil
	case a.Override != nil:
		return "override", a.Override
	}
	return "default", nil
}

// Sentence returns the explanation as one English sentence.
func (e *Explanation) Sentence() string {
	var b strings.Builder
	verdict := "allowed"
	if e.Decision.Refused != 0 {
		verdict = "denied"
	}
	if e.Quantities == nil {
		fmt.Fprint(&b, e.Quantity)
	} else {
		b.WriteString(strings.Trim(fmt.Sprint(e.Quantities), "[]"))
	}
	fmt.Fprintf(&b, " for %q ", e.Key)
	if e.Network != nil {
		fmt.Fprintf(&b, "of network %s ", e.Network)
	}
	fmt.Fprintf(&b, "is %s: ", verdict)
	switch name, entry := e.Entry(); {
	case name == "ban":
		fmt.Fprintf(&b, "the key is banned for %s by policy %s", inMillis(e.Banned), e.Rules.Name)
	case entry == nil:
		fmt.Fprintf(&b, "the limits of policy %s apply", e.Rules.Name)
	default:
		fmt.Fprintf(&b, "%s %q applies", name, entry.Pattern)
		if entry.Comment != "" {
			fmt.Fprintf(&b, " (%s)", entry.Comment)
		}
	}
	if f := e.Applied.Boost; f != nil {
		fmt.Fprintf(&b, ", boosted by %s", policy.AppendFactor(nil, f.Factor))
	}
	for i := range e.Clauses {
		d := &e.Clauses[i].Decision
		if e.Limits.Clauses[i].Kind == clause.Unlimited {
			b.WriteString("; NONE: no limit")
			continue
		}
		fmt.Fprintf(&b, "; %s: %d of %d used", e.Clauses[i].Text, d.Limit-d.Remaining, d.Limit)
		if keep := e.Clauses[i].Keep; keep > 0 {
			fmt.Fprintf(&b, ", %d kept for others", keep)
		}
		switch k := &e.Clauses[i].Retained; k.Reservations {
		case 0:
		case 1:
			fmt.Fprintf(&b, ", 1 reservation of %d units that ends in %s", k.Held, inMillis(k.Ends))
		default:
			fmt.Fprintf(&b, ", %d reservations of %d units, of which the first ends in %s", k.Reservations, k.Held, inMillis(k.Ends))
		}
		switch {
		case d.Refused == 0:
		case d.RetryAfter == limit.NoRetry:
			b.WriteString(", never passes")
		default:
			fmt.Fprintf(&b, ", passes in %s", inMillis(d.RetryAfter))
		}
	}
	if bans := e.Limits.Bans; bans != nil && e.Banned == 0 {
		fmt.Fprintf(&b, "; %s: %d of %d denials", e.Limits.Text[len(e.Limits.Clauses)], e.Denials, bans.Refusals)
	}
	if e.Rules.Main.Shadow {
		b.WriteString("; the policy is a shadow")
	}
	if e.WouldBe != nil && e.WouldBe.Refused != 0 {
		b.WriteString("; otherwise it would be denied")
	}
	if e.Rules.Main.Count {
		b.WriteString("; a denied call is charged, too")
	}
	return b.String()
}

// inMillis rounds d up to milliseconds.
func inMillis(d time.Duration) time.Duration {
	return time.Duration(limit.MillisUp(d)) * time.Millisecond
}
