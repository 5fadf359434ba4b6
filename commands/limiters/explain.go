package limiters

import (
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
)

func explainCommand() *command.Command {
	return &command.Command{
		Name: "rl.explain", Arity: -3, Flags: command.FlagReadonly | command.FlagFast | command.FlagMovableKeys,
		Keys: command.KeySpec{Derived: &policyKey}, Categories: command.CatPolicy, Group: "policy",
		Summary: "Says what RL.USE would answer, and why. It changes nothing.", Syntax: "policy key [quantity [quantity ...]] [KEEP <units | share%> | CLASS class]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: "a map: what applies to the key, what is decided, and each clause with what is used of it", Run: explain, Parse: explainOnStore, Answer: answerExplain,
	}
}

// explain is the Run function of RL.EXPLAIN. It replies with the entries that apply to the key and
// with the decision that RL.USE would make. It charges nothing.
func explain(c *command.Call) {
	s := command.Scratch[scratch](c)
	var u useCall
	if err := u.parseExplain(c, &s.quantities); err != "" {
		c.Fail(err)
		return
	}
	e, err := s.decider.Explain(u.Call)
	writeExplainResult(c, &e, err)
}

// parseExplain parses the arguments of RL.EXPLAIN into u, as parse does.
func (u *useCall) parseExplain(c *command.Call, room *quantities) resp.Error {
	if err := u.parse(c.Args[1:], room); err != "" {
		return err
	}
	if u.Mode != ratelimit.Whole || u.millis || u.withDetails || u.Member != nil || u.id.Token != nil || u.own.window != nil {
		return "ERR RL.EXPLAIN takes quantities, KEEP and CLASS, and no other option"
	}
	u.of(c)
	return ""
}

// writeExplainResult replies with e, or with err if that is not nil.
func writeExplainResult(c *command.Call, e *ratelimit.Explanation, err error) {
	u := useCall{Lookup: e.Lookup}
	if err != nil {
		c.Fail(u.failure(err))
		return
	}
	tryErr := resp.Error("")
	if e.CandidateErr != nil {
		tryErr = u.failure(e.CandidateErr)
	}
	writeExplanation(c, e, tryErr)
}

// writeExplanation replies with e. If tryErr is not "", it is written in place of the clauses of the
// candidate.
func writeExplanation(c *command.Call, e *ratelimit.Explanation, tryErr resp.Error) {
	w, age, stale := c.W, time.Duration(0), false
	if f := c.Server.Options.PoliciesStale; f != nil {
		age, stale = f()
	}
	name, entry := e.Entry()
	fields := 10 + len(policy.Switches)
	if stale {
		fields++
	}
	if e.Network != nil {
		fields++
	}
	if e.Tries() {
		fields++
	}
	if e.Limits.Bans != nil {
		fields++
	}
	if e.WouldBe != nil {
		fields++
	}
	w.Map(fields)
	text(w, "text", e.Sentence())
	text(w, "policy", e.Rules.Name)
	w.BulkString("key")
	w.Bulk(e.Key)
	if e.Network != nil {
		w.BulkString("network")
		w.Bulk(e.Network)
	}
	text(w, "applies", name)
	w.BulkString("pattern")
	writePattern(w, entry)
	w.BulkString("ttl")
	if name == "ban" {
		w.Int(limit.SecondsUp(e.Banned))
	} else {
		w.Int(entry.TTL(e.Now))
	}
	comment := ""
	if entry != nil {
		comment = entry.Comment
	}
	text(w, "comment", comment)
	w.BulkString("boost")
	if boost := e.Applied.Boost; boost == nil {
		w.Null()
	} else {
		w.Map(3)
		w.BulkString("pattern")
		w.BulkString(boost.Pattern)
		w.BulkString("factor")
		w.Bulk(policy.AppendFactor(nil, boost.Factor))
		w.BulkString("ttl")
		w.Int(boost.TTL(e.Now))
	}
	for _, s := range policy.Switches {
		w.BulkString(s.Field)
		w.Int(elements.OneIf(*s.Of(&e.Rules.Main.Flags)))
	}
	if stale {
		w.BulkString("policies-age-ms")
		w.Int(limit.MillisUp(age))
	}
	if bans := e.Limits.Bans; bans != nil {
		w.BulkString("ban")
		w.Map(4)
		w.BulkString("limit")
		w.BulkString(e.Limits.Text[len(e.Limits.Clauses)])
		w.BulkString("key")
		w.Bulk(e.BanKey())
		w.BulkString("denials")
		w.Int(e.Denials)
		w.BulkString("banned-ms")
		w.Int(limit.MillisUp(e.Banned))
	}
	w.BulkString("answer")
	writeDecision(w, &e.Decision, false)
	if e.WouldBe != nil {
		w.BulkString("would-be")
		writeDecision(w, e.WouldBe, false)
	}
	w.BulkString("clauses")
	writeExplained(w, e.Clauses)
	if !e.Tries() {
		return
	}
	w.BulkString("try")
	if tryErr != "" {
		w.BulkString(string(tryErr))
		return
	}
	writeExplained(w, e.Candidate)
}

// writeExplained writes an array with a map for each of clauses. The map has the decision on the
// clause.
func writeExplained(w *resp.Writer, clauses []ratelimit.Explained) {
	w.Array(len(clauses))
	for i := range clauses {
		is := &clauses[i]
		d, k := &is.Decision, &is.Retained
		fields := 8
		if is.Keep > 0 {
			fields++
		}
		if k.IDs > 0 {
			fields++
		}
		if k.Reservations > 0 {
			fields += 3
		}
		w.Map(fields)
		text(w, "clause", is.Text)
		text(w, "with-unit", clause.WithUnit(is.Text, is.Millis))
		w.BulkString("key")
		w.Bulk(is.State)
		number := func(name string, n int64) {
			w.BulkString(name)
			w.Int(n)
		}
		number("limited", d.Refused)
		number("limit", d.Limit)
		number("used", limit.SatSub(d.Limit, d.Remaining))
		number("retry-after-ms", limit.MillisUp(d.RetryAfter))
		number("reset-after-ms", limit.MillisUp(d.ResetAfter))
		if is.Keep > 0 {
			number("keep", is.Keep)
		}
		if k.IDs > 0 {
			number("ids", k.IDs)
		}
		if k.Reservations > 0 {
			number("reservations", k.Reservations)
			number("held", k.Held)
			number("ends-after-ms", limit.MillisUp(k.Ends))
		}
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
