package limiters

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/limit"
)

func multiCommands() []*command.Command {
	return []*command.Command{{
		Name: "rl.multi", Arity: -4, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagMovableKeys,
		Keys: command.KeySpec{Find: multiKeys}, Categories: command.CatRateLimit, Group: "ratelimit",
		WordWork: clauseWordWork,
		Summary:  "Charges several limits at one instant, all of them or none.",
		Syntax: "numkeys key [key ...] <CL max_burst count period [quantity] | SW limit window [quantity] [mode] | " +
			"TB capacity count period [quantity] [mode]> [MS] [PEEK] [WITHDETAILS]",
		Since: "1.0.0", Complexity: "O(N) of the clauses",
		Reply: fiveReply + ", of the binding clause; with WITHDETAILS also those of every clause", Run: rlMulti,
	}}
}

// clauseWordWork is a fifth of what a clause takes, which has five words with its key or
// so.
const clauseWordWork = 5

// multiKeys finds the keys of RL.MULTI for COMMAND GETKEYS and for transactions.
func multiKeys(args [][]byte) ([]int, bool) {
	if len(args) < 2 {
		return nil, false
	}
	n, ok := parse.Int(args[1])
	if !ok || n < 1 || n > int64(len(args)-2) {
		return nil, false
	}
	at := make([]int, n)
	for i := range at {
		at[i] = i + 2
	}
	return at, true
}

func rlMulti(c *command.Call) {
	m := &command.Scratch[scratch](c).multi
	if err := m.parse(c.Args[1:], c.Server.Limits().LogMaxEntries); err != "" {
		c.Fail(err)
		return
	}
	defer m.trim()
	refused, err := c.Store.Multi(c.Client.Selected(), m.clauses, m.details)
	if err != nil {
		c.Fail(command.StoreError(err))
		return
	}
	d := m.binding(refused)
	c.Denied += d.Refused
	for i := range m.details {
		note(c, m.clauses[i].Key, m.details[i].Refused != 0)
	}
	if !m.detail {
		writeDecision(c.W, d, nil, m.millis)
		return
	}
	c.W.Array(2)
	writeDecision(c.W, d, nil, m.millis)
	c.W.Array(len(m.details))
	for _, d := range m.details {
		writeDecision(c.W, d, nil, m.millis)
	}
}

// binding is the answer as a whole: the limit that leaves least, among the refused
// ones if there are any, with the longest times.
func (m *multiArgs) binding(refused bool) limit.Decision {
	d := limit.Decision{RetryAfter: limit.NoRetry}
	chosen, never := false, false
	for _, detail := range m.details {
		d.ResetAfter = max(d.ResetAfter, detail.ResetAfter)
		if refused && detail.Refused == 0 {
			continue
		}
		if !chosen || detail.Remaining < d.Remaining {
			d.Limit, d.Remaining, chosen = detail.Limit, detail.Remaining, true
		}
		never = never || detail.RetryAfter == limit.NoRetry
		d.RetryAfter = max(d.RetryAfter, detail.RetryAfter)
	}
	if refused {
		d.Refused = 1
		if never {
			d.RetryAfter = limit.NoRetry
		}
	} else {
		d.RetryAfter = limit.NoRetry
	}
	return d
}
