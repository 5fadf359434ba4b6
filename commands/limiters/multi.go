package limiters

import (
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

func multiCommands() []*command.Command {
	return []*command.Command{{
		Name: "rl.multi", Arity: -4, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagMovableKeys | command.FlagDecides,
		Keys: command.KeySpec{Count: 1}, Categories: command.CatRateLimit, Group: "ratelimit",
		WordWork: clauseWordWork,
		Summary:  "Charges several limits at one instant, all of them or none.",
		Syntax: "numkeys key [key ...] <CL max_burst count period [quantity] | " +
			"SW limit <window | DAY | WEEK | MONTH | YEAR> [quantity] [mode] | " +
			"TB capacity count period [quantity] [mode] | CC limit lease> [MEMBER member] [ID token | RESERVE id ttl] [MS] [PEEK] [WITHDETAILS]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: fiveReply + ", of the binding clause; with WITHDETAILS also those of every clause", Parse: askMulti, Answer: answerMulti,
	}}
}

// clauseWordWork is the work of each argument of RL.MULTI, in units. It is a fifth of the work of a
// clause, since a clause has about five arguments including its key.
const clauseWordWork = 5

func askMulti(c *command.Call) resp.Error {
	m := &command.Scratch[scratch](c).multi
	bounds := c.Server.Limits()
	if err := m.parse(c.Args[1:], clause.Options{LogMaxEntries: bounds.LogMaxEntries, MaxMembers: bounds.MaxMembers}); err != "" {
		return err
	}
	a := c.NewAsk(decide.Several, nil)
	a.Clauses, a.Details, a.Partial, a.Millis, a.WithDetails = m.Clauses, m.Details, false, m.millis, m.detail
	if err := identify(c, a, &m.id.Identity); err != "" || m.id.TTL == 0 {
		return err
	}
	_, end, _ := c.Cmd.Keys.Range(c.Args)
	a.Reserve.Linked, a.Reserve.Link, a.Reserve.Keys = true, true, c.Args[3:end]
	return ""
}

func answerMulti(c *command.Call, a *decide.Ask) {
	answer := command.Scratch[scratch](c).decider.AnswerClauses(caller{c}, a)
	c.Denied += answer.Decision.Refused
	writeAnswer(c.W, &answer, a.WithDetails, a.Millis)
}
