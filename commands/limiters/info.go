package limiters

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

func ratelimitCommands() []*command.Command {
	return []*command.Command{
		{
			Name: "rl.info", Arity: -2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey,
			Categories: command.CatRateLimit, Group: "ratelimit",
			Summary: "Shows what is stored under a limiter's key.",
			Syntax:  "key [CL max_burst count period | SW limit | TB capacity | CC limit]",
			Since:   "1.0.0", Complexity: "O(1); O(N) of what a LOG, BUCKETS or lease set holds",
			Reply: "a map of fields, or null", RunOn: command.On(rlInfo), Parse: askInfo, Answer: answerInfo,
		},
		{
			Name: "rl.top", Arity: -1, Flags: command.FlagAdmin | command.FlagLocal | command.FlagFence, Categories: command.CatRateLimit, Group: "ratelimit",
			Summary: "Shows the keys that are denied, called or repeated most at present.", Syntax: "[DENIED | CALLS | REPEATS] [COUNT count] [DB index] [WITHDETAILS] [FLEET]",
			Since: "1.0.0", Complexity: "O(1)", Run: rlTop,
			Reply: "a map of keys and estimated counts, the largest first; with WITHDETAILS an array of maps: db, key, count, per-second, share, two-limits; with FLEET of all servers of a store, and servers and missing in place of two-limits",
		},
	}
}

// rlInfo is the Run function of RL.INFO. It writes the fields to a buffer first, because the reply
// begins with their number.
func rlInfo(c storeCall) {
	by, fault := parseInfo(c.Args[2:])
	if fault != "" {
		c.Fail(fault)
		return
	}
	fields := resp.Writer{Proto: c.Client.Proto}
	n := 0
	found, err := c.Store.Describe(c.Client.Selected(), c.Args[1], by, func(field, text string, number int64, isText bool) {
		n++
		fields.BulkString(field)
		if isText {
			fields.BulkString(text)
		} else {
			fields.Int(number)
		}
	})
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
		return
	case !found:
		c.W.Null()
		return
	}
	two := hasTwoLimits(c.Call, c.Client.Selected(), c.Args[1])
	c.W.Map(n + two)
	c.W.Raw(fields.Buf)
	writeTwoLimits(c.Call, two)
}

// askInfo is the Parse function of RL.INFO. It is used if a Remote has the keys.
func askInfo(c *command.Call) resp.Error {
	by, fault := parseInfo(c.Args[2:])
	if fault != "" {
		return fault
	}
	c.NewAsk(decide.Admin, c.Args[1]).Admin = decide.AdminCall{Op: decide.Describe, By: by}
	return ""
}

// answerInfo is the Answer function of RL.INFO. It is used if a Remote has the keys.
func answerInfo(c *command.Call, a *decide.Ask) {
	if !a.Result.Found {
		c.W.Null()
		return
	}
	two := hasTwoLimits(c, a.DB, a.Key)
	c.W.Map(len(a.Result.Fields) + two)
	for _, f := range a.Result.Fields {
		c.W.BulkString(f.Name)
		if f.IsText {
			c.W.BulkString(f.Text)
		} else {
			c.W.Int(f.Number)
		}
	}
	writeTwoLimits(c, two)
}

// hasTwoLimits returns the number of additional fields of RL.INFO: 1 if two limits share key, and 0
// if not.
func hasTwoLimits(c *command.Call, db int, key []byte) int {
	return int(elements.OneIf(command.ServerState[ratelimit.Service](c).Keys.TwoLimits(db, string(key), c.Store.Now())))
}

func writeTwoLimits(c *command.Call, two int) {
	if two > 0 {
		c.W.BulkString("two-limits")
		c.W.Int(1)
	}
}

// parseInfo parses args, the limit that a caller of RL.INFO may give in the form of a clause of
// RL.MULTI. by is the argument for [env.Inspector].Describe; nil if args is empty. err is "" on
// success.
func parseInfo(args [][]byte) (by any, err resp.Error) {
	if len(args) == 0 {
		return nil, ""
	}
	word, numbers := args[0], 1
	kind := clause.Word(word)
	switch kind {
	case clause.None, clause.Unlimited, clause.Ban:
		return nil, resp.SyntaxNear(word)
	case clause.Cell:
		numbers = 3
	}
	if len(args) > 1+numbers {
		return nil, resp.SyntaxNear(args[1+numbers])
	}
	if kind == clause.Cell {
		var quota gcra.Quota
		var quantity int64
		err = clause.ThrottleClause(args, time.Second, &quota, &quantity)
		return &quota, err
	}
	if len(args) < 2 {
		return nil, resp.SyntaxNear(word)
	}
	var most int64
	if err = arg.AtLeast(args[1], "limit", 0, &most); err != "" {
		return nil, err
	}
	switch kind {
	case clause.Window:
		return &slidingwindow.Call{Limit: most}, ""
	case clause.Bucket:
		return &tokenbucket.Call{Capacity: most}, ""
	}
	return &concurrency.Call{Limit: most}, ""
}
