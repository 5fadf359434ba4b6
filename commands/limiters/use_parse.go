package limiters

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
)

// useCall is a parsed call under one policy of
//
//	RL.USE policy key [quantity [quantity ...]] [PEEK | PARTIAL | FORCE | WAIT max | BLOCK timeout]
//	  [KEEP units | KEEP share% | CLASS class] [LIMIT max window] [MEMBER m] [ID token | RESERVE id ttl] [MS] [WITHDETAILS]
type useCall struct {
	ratelimit.Lookup
	// millis says that the times of the reply are in milliseconds, and withDetails that the reply has
	// the decision on each clause.
	millis, withDetails bool
	id                  clause.IdentityArgs // the arguments of the option ID or RESERVE
	own                 ownLimit
}

// quantities is room for the quantities of a call that has one for each clause.
type quantities [policy.MaxClauses]int64

// parse parses args into u, which must be zero and refers to room if args have several quantities.
// args begin with the policy. parse checks them from left to right, but the argument of WAIT or BLOCK
// last, because MS may follow it. The error is "" on success.
func (u *useCall) parse(args [][]byte, room *quantities) resp.Error {
	u.Policy, u.Key, u.Quantity = args[0], args[1], 1
	rest := args[2:]
	if len(rest) == 0 {
		return ""
	}
	rest, err := u.parseQuantities(rest, room)
	if err != "" {
		return err
	}
	if err = u.parseOptions(rest); err == "" {
		err = u.id.Check(u.unit(), u.Least(), true)
		u.Reserve.TTL = u.id.TTL
	}
	return err
}

// parseOptions parses rest, the options at the end of a call.
func (u *useCall) parseOptions(rest [][]byte) (err resp.Error) {
	var wait []byte
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case arg.IsWord(word, "PEEK") && !u.id.Reserves():
			err = u.is(word, ratelimit.Peek)
		case arg.IsWord(word, "PARTIAL") && u.Quantities == nil:
			err = u.is(word, ratelimit.Partial)
		case arg.IsWord(word, "FORCE"):
			err = u.is(word, ratelimit.Force)
		case arg.IsWord(word, "WAIT") && len(rest) > 0:
			wait, rest, err = rest[0], rest[1:], u.is(word, ratelimit.Wait)
		case arg.IsWord(word, "BLOCK") && len(rest) > 0 && u.id.Token == nil:
			wait, rest, err = rest[0], rest[1:], u.is(word, ratelimit.Block)
		case arg.IsWord(word, "MEMBER") && len(rest) > 0 && u.Member == nil:
			u.Member, rest = rest[0], rest[1:]
		case arg.IsWord(word, "KEEP") && len(rest) > 0 && u.Class == nil && u.Keep.None():
			u.Keep, err = clause.ParseKeep(rest[0])
			rest = rest[1:]
		case arg.IsWord(word, "CLASS") && len(rest) > 0 && u.Class == nil && u.Keep.None():
			u.Class, rest = rest[0], rest[1:]
		case arg.IsWord(word, "ID") && len(rest) > 0 && u.id.Token == nil && u.Mode != ratelimit.Block:
			err, rest = u.id.Identify(rest[0]), rest[1:]
		case arg.IsWord(word, "RESERVE") && len(rest) > 1 && u.id.Token == nil && u.Mode != ratelimit.Block && u.Mode != ratelimit.Peek:
			err, rest = u.id.Reserve(rest[0], rest[1]), rest[2:]
		case arg.IsWord(word, "LIMIT") && len(rest) > 1 && u.own.window == nil:
			u.own, rest = ownLimit{rest[0], rest[1]}, rest[2:]
		case arg.IsWord(word, "MS"):
			err = arg.Once(word, &u.millis)
		case arg.IsWord(word, "WITHDETAILS"):
			err = arg.Once(word, &u.withDetails)
		default:
			err = resp.SyntaxNear(word)
		}
		if err == "" && u.Mode == ratelimit.Wait && (u.Class != nil || !u.Keep.None()) {
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return err
		}
	}
	return u.parseWait(wait)
}

// parseQuantities parses the quantities at the beginning of args, and returns the other arguments. It
// changes nothing if there is no quantity.
func (u *useCall) parseQuantities(args [][]byte, room *quantities) (rest [][]byte, err resp.Error) {
	n := 0
	for n < len(args) && arg.StartsNumber(args[n]) {
		if n == len(room) {
			return nil, resp.SyntaxNear(args[n])
		}
		if err := arg.Quantity(args[n], &room[n]); err != "" {
			return nil, err
		}
		n++
	}
	switch n {
	case 0:
	case 1:
		u.Quantity = room[0]
	default:
		u.SetQuantities(room[:n])
	}
	return args[n:], ""
}

// is sets the mode to m. If another mode was set before, it returns a syntax error about word.
func (u *useCall) is(word []byte, m ratelimit.Mode) resp.Error {
	if u.Mode != ratelimit.Whole {
		return resp.SyntaxNear(word)
	}
	u.Mode = m
	return ""
}

// parseWait parses text, the argument of WAIT or BLOCK, and sets u.MaxWait. It does nothing in
// other modes. The error is "" on success.
func (u *useCall) parseWait(text []byte) (err resp.Error) {
	unit := u.unit()
	switch u.Mode {
	case ratelimit.Block:
		u.MaxWait, err = arg.Timeout(text, unit)
	case ratelimit.Wait:
		most, ok := arg.Int(text)
		switch {
		case !ok:
			return resp.Argument(resp.ErrNotInteger, "WAIT", text, "an integer of at least 0")
		case most < 0:
			return resp.ErrTimeoutNegative
		}
		u.MaxWait = time.Duration(limit.SatMul(most, int64(unit)))
	}
	return err
}

// unit returns the unit of the times in the options.
func (u *useCall) unit() time.Duration {
	if u.millis {
		return time.Millisecond
	}
	return time.Second
}
