package limiters

import (
	"fmt"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
)

func explainCommand() *command.Command {
	return &command.Command{
		Name: "rl.explain", Arity: -3, Flags: command.FlagReadonly | command.FlagFast | command.FlagMovableKeys,
		Keys: command.KeySpec{Derived: &policyKey}, Categories: command.CatPolicy, Group: "policy",
		Summary: "Says what RL.USE would answer, and why. It changes nothing.", Syntax: "policy key [quantity]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: "a map: what applies to the key, what is decided, and each clause with what is used of it", Run: explain,
	}
}

// explainMember is the member for which RL.EXPLAIN decides CC clauses. It is no real member, so it
// never holds a place.
var explainMember = []byte("\x00RL.EXPLAIN")

// explanation is what the reply of RL.EXPLAIN says. limits are those that were decided last: the
// limits that apply, and later those of the candidate. details are the decisions on their clauses.
type explanation struct {
	*useScratch
	now      limit.Instant
	decision limit.Decision // the decision on all clauses together
	details  []limit.Decision
	limits   *policy.Limits
}

// explain is the Run function of RL.EXPLAIN.
func explain(c *command.Call) {
	u := &command.Scratch[scratch](c).use
	if err := u.parse(c.Args[1:]); err != "" {
		c.Fail(err)
		return
	}
	if len(c.Args) > 4 || u.mode != useWhole || u.millis || u.withDetails || u.member != nil {
		c.Fail(resp.SyntaxNear(c.Args[len(c.Args)-1]))
		return
	}
	if u.find(c); u.policy == nil {
		c.Fail(command.NoPolicy(u.name))
		return
	}
	u.mode, u.member, u.options = usePeek, explainMember, true
	e := explanation{useScratch: u, now: c.Store.Now()}
	if err := e.decide(c, u.limits, false); err != "" {
		c.Fail(err)
		return
	}
	e.write(c)
}

// decide decides the call under limits without charging it, and sets e.limits, e.details and
// e.decision. candidate says that limits are those of the policy's candidate, which has its own
// state.
func (e *explanation) decide(c *command.Call, limits *policy.Limits, candidate bool) resp.Error {
	a, err := e.several(c, limits, candidate)
	if err != "" {
		return err
	}
	if c.Store.Decide(a); a.Err != nil {
		return command.StoreError(a.Err)
	}
	e.limits, e.details, e.decision = limits, append(e.details[:0], a.Details...), a.Binding()
	return ""
}

// write writes the reply. It decides the call under the policy's candidate at the end, because that
// replaces the decisions on the limits that apply.
func (e *explanation) write(c *command.Call) {
	w, tries := c.W, e.hasCandidate()
	name, entry := e.entry()
	fields := 11
	if tries {
		fields++
	}
	w.Map(fields)
	text(w, "text", e.text(name, entry))
	text(w, "policy", e.policy.Name)
	w.BulkString("key")
	w.Bulk(e.key)
	text(w, "applies", name)
	w.BulkString("pattern")
	writePattern(w, entry)
	w.BulkString("ttl")
	w.Int(entry.TTL(e.now))
	comment := ""
	if entry != nil {
		comment = entry.Comment
	}
	text(w, "comment", comment)
	w.BulkString("boost")
	if e.applied.Boost == nil {
		w.Null()
	} else {
		w.Map(3)
		w.BulkString("pattern")
		w.BulkString(e.applied.Boost.Pattern)
		w.BulkString("factor")
		w.Bulk(policy.AppendFactor(nil, e.applied.Boost.Factor))
		w.BulkString("ttl")
		w.Int(e.applied.Boost.TTL(e.now))
	}
	w.BulkString("shadow")
	w.Int(elements.OneIf(e.policy.Main.Shadow))
	w.BulkString("answer")
	answer := e.answered()
	writeDecision(w, &answer, false)
	w.BulkString("clauses")
	e.writeClauses(c, false)
	if tries {
		w.BulkString("try")
		if err := e.decide(c, e.policy.Candidate.Limits, true); err != "" {
			w.BulkString(string(err))
			return
		}
		e.writeClauses(c, true)
	}
}

// entry returns the entry that applies to the key, with the name of its kind: "exemption", "block"
// or "override". If the limits of the policy itself apply, entry is nil and name is "default".
func (e *explanation) entry() (name string, entry *policy.Entry) {
	switch a := &e.applied; {
	case a.Exempt != nil:
		return "exemption", a.Exempt
	case a.Block != nil:
		return "block", a.Block
	case a.Override != nil:
		return "override", a.Override
	}
	return "default", nil
}

// answered returns the decision with which RL.USE would reply, in view of a block, an exemption or
// a shadow policy.
func (e *explanation) answered() limit.Decision {
	d := e.decision
	switch {
	case e.blocks():
		left := e.blockedFor(e.now)
		return limit.Decision{Refused: 1, Limit: e.limitOf(0), RetryAfter: left, ResetAfter: left}
	case e.lenient():
		d.Refused, d.RetryAfter = 0, limit.NoRetry
	}
	return d
}

// text returns the explanation as one English sentence. name and entry are the results of entry.
func (e *explanation) text(name string, entry *policy.Entry) string {
	var b strings.Builder
	verdict := "allowed"
	if d := e.answered(); d.Refused != 0 {
		verdict = "denied"
	}
	fmt.Fprintf(&b, "%d for %q is %s: ", e.quantity, e.key, verdict)
	if entry == nil {
		fmt.Fprintf(&b, "the limits of policy %s apply", e.policy.Name)
	} else {
		fmt.Fprintf(&b, "%s %q applies", name, entry.Pattern)
		if entry.Comment != "" {
			fmt.Fprintf(&b, " (%s)", entry.Comment)
		}
	}
	if f := e.applied.Boost; f != nil {
		fmt.Fprintf(&b, ", boosted by %s", policy.AppendFactor(nil, f.Factor))
	}
	for i := range e.details {
		d := &e.details[i]
		fmt.Fprintf(&b, "; %s: %d of %d used", e.limits.Text[i], d.Limit-d.Remaining, d.Limit)
		switch {
		case d.Refused == 0:
		case d.RetryAfter == limit.NoRetry:
			b.WriteString(", never passes")
		default:
			fmt.Fprintf(&b, ", passes in %s", time.Duration(limit.MillisUp(d.RetryAfter))*time.Millisecond)
		}
	}
	if e.policy.Main.Shadow {
		b.WriteString("; the policy is a shadow")
	}
	return b.String()
}

// writeClauses writes an array with the decision on each clause. candidate says whether the clauses
// are those of the candidate.
func (e *explanation) writeClauses(c *command.Call, candidate bool) {
	w := c.W
	w.Array(len(e.details))
	for i := range e.details {
		d := &e.details[i]
		w.Map(8)
		text(w, "clause", e.limits.Text[i])
		text(w, "with-unit", clause.WithUnit(e.limits.Text[i], e.limits.Millis))
		w.BulkString("key")
		w.Bulk(e.stateKey(c, i, candidate))
		number := func(name string, n int64) {
			w.BulkString(name)
			w.Int(n)
		}
		number("limited", d.Refused)
		number("limit", d.Limit)
		number("used", limit.SatSub(d.Limit, d.Remaining))
		number("retry-after-ms", limit.MillisUp(d.RetryAfter))
		number("reset-after-ms", limit.MillisUp(d.ResetAfter))
	}
}

func text(w *resp.Writer, name, value string) {
	w.BulkString(name)
	w.BulkString(value)
}

func writePattern(w *resp.Writer, e *policy.Entry) {
	if e == nil {
		w.Null()
		return
	}
	w.BulkString(e.Pattern)
}
