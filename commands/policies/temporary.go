package policies

import (
	"bytes"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
)

// These are the kinds of entries that RL.BOOST, RL.BLOCK and RL.EXEMPT set.
const (
	boostKind  = policy.Boost
	blockKind  = policy.Block
	exemptKind = policy.Exempt
)

// boost is the Run function of RL.BOOST, whose arguments are: policy pattern factor EX duration.
func boost(c *command.Call) {
	factor, err := policy.ParseFactor(c.Args[3])
	if err != nil {
		c.Fail(resp.Error("ERR " + err.Error()))
		return
	}
	temporary(c, c.Args[4:], options{expires: true}, policy.Entry{Kind: boostKind, Factor: factor})
}

// block is the Run function of RL.BLOCK, whose arguments are: policy pattern [EX duration] [REASON
// text].
func block(c *command.Call) {
	if i := bytes.IndexByte(c.Args[2], '*'); i >= 0 && i < len(c.Args[2])-1 {
		c.Fail(errStar)
		return
	}
	temporary(c, c.Args[3:], options{expires: true, text: "REASON"}, policy.Entry{Kind: blockKind})
}

// exempt is the Run function of RL.EXEMPT, whose arguments are: policy pattern [EX duration]
// [REASON text].
func exempt(c *command.Call) {
	temporary(c, c.Args[3:], options{expires: true, text: "REASON"}, policy.Entry{Kind: exemptKind})
}

// temporary sets the entry e. The policy and the pattern come from the arguments of the running
// command, and the expiry and the text from args. o says which options args may have. RL.BOOST
// always has an expiry, because its arity requires one.
func temporary(c *command.Call, args [][]byte, o options, e policy.Entry) {
	var w words
	if err := w.parse(args, o); err != "" {
		c.Fail(c.Usage(err))
		return
	}
	until, err := w.until(c)
	if err != "" {
		c.Fail(err)
		return
	}
	e.Pattern, e.Until, e.Comment = string(c.Args[2]), until, string(w.text)
	setEntry(c, func(*policy.Entry, limit.Instant) (*policy.Entry, resp.Error) { return &e, "" })
}

// errStar refuses a block whose pattern has a star before its end. Such a star stands for itself,
// so the block would deny a single key, while its author probably means many.
const errStar resp.Error = "ERR only the last character of a pattern may be '*' here; RL.OVERRIDE SET takes others as they are"

// end returns the Run function of a command that deletes an entry of kind.
func end(kind policy.Kind) func(*command.Call) {
	return func(c *command.Call) { deleteEntry(c, kind) }
}

// unblock is the Run function of RL.UNBLOCK. It ends a block. If the pattern is an exact key, it also ends the bans of
// the key by the policy and by its candidate, and resets the number of denials and the level of the bans to 0.
func unblock(c *command.Call) {
	there, confirm, done := removeEntry(c, policy.Block)
	if !done {
		return
	}
	name, key := c.Args[1], c.Args[2]
	if p := tableOf(c.Server).Policy(name); p != nil {
		if state, err := ratelimit.AppendStateOf(nil, p, key, c.Store.Now()); err == nil { // only an exact pattern can have a ban
			a := new(decide.Ask)
			bans := ratelimit.Forget(a, c.Client.Selected(), name, state, true)
			if c.Store.Decide(a); a.Err != nil {
				c.Fail(command.StoreError(a.Err))
				return
			}
			there = there || bans.Removed > 0
		}
	}
	if confirmed(c, confirm) {
		c.W.Int(elements.OneIf(there))
	}
}
