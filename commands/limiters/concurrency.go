package limiters

import (
	"encoding/base64"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

func concurrencyCommands() []*command.Command {
	const log = "O(log N) of the members"
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatRateLimit, Group: "ratelimit", Since: "1.0.0", Complexity: log,
	}, []*command.Command{
		{
			Name: "cc.acquire", Arity: -5, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides,
			Summary: "Takes one of limit places with a lease, or refreshes the member's lease.",
			Syntax:  "key limit lease member [MS] [PEEK] [BLOCK timeout]", Reply: fiveReply, Run: leaseAcquire, Parse: askLease,
			Answer: answerFive, Waits: leaseWaits,
		},
		{
			Name: "cc.release", Arity: 3, Flags: command.FlagWrite | command.FlagFast,
			Summary: "Gives a member's place back.", Syntax: "key member", Reply: "1 if the member held one, 0 if not", Parse: askRelease,
			Answer: answerLease,
		},
		{
			Name: "cc.renew", Arity: -4, Flags: command.FlagWrite | command.FlagFast,
			Summary: "Sets a new lease for a member that holds a place.", Syntax: "key member lease [MS]",
			Reply: "1 if the member held one, 0 if not", Parse: askRenew, Answer: answerLease,
		},
		{
			Name: "cc.list", Arity: -2, Flags: command.FlagReadonly, Complexity: "O(log N + M) of M members that are looked at",
			Summary: "Lists the members that hold places, in the order of their names, a part in each call.",
			Syntax:  "key [CURSOR cursor] [COUNT count]",
			Reply:   "the cursor of the next call, 0 at the end, and for each member its name, the end of its lease in Unix milliseconds, and its places",
			Parse:   askMembers, Answer: answerMembers,
		},
	})
}

func askLease(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Lease, c.Args[1])
	err := clause.LeaseAcquire(c.Args[1:], c.Server.Limits().MaxMembers, &a.Lease)
	a.Millis = a.Lease.Millis
	return c.WithUsage(err)
}

// leaseAcquire is the Run function of CC.ACQUIRE, which may wait for a place.
func leaseAcquire(c *command.Call) {
	if err := askLease(c); err != "" {
		c.Fail(err)
		return
	}
	a := c.OwnAsk()
	if a.Lease.Block && c.MayWait() {
		waitFor(c, a, a.Lease.Timeout, counted{})
		return
	}
	if c.Store.Decide(a); a.Err != nil {
		c.Fail(command.StoreError(a.Err))
		return
	}
	answerFive(c, a)
}

// leaseWaits is the Waits function of CC.ACQUIRE. It reports whether the arguments are valid and
// contain BLOCK.
func leaseWaits(s *command.Server, args [][]byte) bool {
	if !saysBlock(args) {
		return false
	}
	var call concurrency.Call
	return clause.LeaseAcquire(args[1:], s.Limits().MaxMembers, &call) == "" && call.Block
}

func askRelease(c *command.Call) resp.Error {
	return clause.LeaseRelease(c.Args[1:], &c.NewAsk(decide.Lease, c.Args[1]).Lease)
}

func askRenew(c *command.Call) resp.Error {
	return c.WithUsage(clause.LeaseRenew(c.Args[1:], &c.NewAsk(decide.Lease, c.Args[1]).Lease))
}

// answerLease replies to CC.RELEASE and CC.RENEW: with 1 if the member held a lease, and 0 if not.
func answerLease(c *command.Call, a *decide.Ask) {
	if a.Decision.Refused == 0 {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}

// These are the default and the maximum COUNT of CC.LIST.
const (
	defaultListed = 10
	mostListed    = 1000
)

// askMembers parses the arguments of CC.LIST.
func askMembers(c *command.Call) resp.Error {
	a := c.NewAsk(decide.Admin, c.Args[1])
	a.Admin = decide.AdminCall{Op: decide.Members, Count: defaultListed}
	hasCursor, hasCount := false, false
	for rest := c.Args[2:]; len(rest) > 0; rest = rest[2:] {
		err := resp.Error("")
		switch word := rest[0]; {
		case arg.IsWord(word, "CURSOR") && len(rest) > 1:
			if err = arg.Once(word, &hasCursor); err == "" {
				a.Admin.After, err = parseMemberCursor(rest[1])
			}
		case arg.IsWord(word, "COUNT") && len(rest) > 1:
			if err = arg.Once(word, &hasCount); err == "" {
				a.Admin.Count, err = parseListed(rest[1])
			}
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return c.WithUsage(err)
		}
	}
	return ""
}

func parseListed(text []byte) (int, resp.Error) {
	const must = "from 1 to 1000"
	switch n, ok := arg.Int(text); {
	case !ok:
		return 0, resp.Argument(resp.ErrNotInteger, "COUNT", text, must)
	case n < 1 || n > mostListed:
		return 0, resp.Argument(resp.ErrNotPositive, "COUNT", text, must)
	default:
		return int(n), ""
	}
}

// firstMembers is the cursor with which a list begins and ends. Any other cursor is memberCursor and
// the name of the last member that was looked at, in base64.
const (
	firstMembers = "0"
	memberCursor = '='
)

// parseMemberCursor returns the name after which the list begins; nil for the beginning.
func parseMemberCursor(text []byte) (after []byte, err resp.Error) {
	if string(text) == firstMembers {
		return nil, ""
	}
	if len(text) == 0 || text[0] != memberCursor {
		return nil, resp.ErrInvalidCursor
	}
	after, fault := base64.RawURLEncoding.Strict().AppendDecode([]byte{}, text[1:])
	if fault != nil || len(after) > concurrency.MaxMemberSize {
		return nil, resp.ErrInvalidCursor
	}
	return after, ""
}

// answerMembers replies to CC.LIST.
func answerMembers(c *command.Call, a *decide.Ask) {
	c.W.Array(2)
	if next := a.Result.Next; next == nil {
		c.W.BulkString(firstMembers)
	} else {
		c.W.Bulk(base64.RawURLEncoding.AppendEncode([]byte{memberCursor}, next))
	}
	c.W.Array(len(a.Result.Members))
	for i := range a.Result.Members {
		m := &a.Result.Members[i]
		c.W.Array(3)
		c.W.Bulk(m.Name)
		c.W.Int(int64(c.Store.Civil(m.Until)) / 1e6)
		c.W.Int(m.Places)
	}
}
