package limiters

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// The errors of RL.USE for calls whose options the policy does not support.
const (
	errUseMember  resp.Error = "ERR the policy has a CC clause, which needs MEMBER"
	errUseForce   resp.Error = "ERR FORCE is not for a policy with a CC clause"
	errUsePartial resp.Error = "ERR PARTIAL is not for a policy with DEBT"
)

// useMode says how a call of RL.USE takes its quantity. A call has exactly one mode.
type useMode uint8

const (
	useWhole   useMode = iota
	usePeek            // charges nothing
	usePartial         // takes what is available
	useForce           // takes the whole quantity, even beyond the limit
	useWait            // reserves the quantity, and replies how long to wait
	useBlock           // waits for room
)

// useArgs has the parsed arguments of
//
//	RL.USE policy key [quantity] [PEEK | PARTIAL | FORCE | WAIT max | BLOCK timeout]
//	  [MEMBER m] [MS] [WITHDETAILS]
type useArgs struct {
	name, key []byte // name is that of the policy; key is the one to charge
	quantity  int64
	mode      useMode
	// wait is the maximum wait of the modes WAIT and BLOCK. For BLOCK, 0 means no maximum.
	wait time.Duration
	// member is the argument of MEMBER; nil if it is not given.
	member              []byte
	millis, withDetails bool
	// options says that the call has arguments after policy and key.
	options bool
}

// parse parses args, which begin with the policy, into u. It checks them from left to right, but
// the time of WAIT or BLOCK at the end, because MS may follow it. The error is "" on success.
func (u *useArgs) parse(args [][]byte) resp.Error {
	if u.options { // reset what the previous call has set
		*u = useArgs{}
	}
	u.name, u.key, u.quantity = args[0], args[1], 1
	rest := args[2:]
	if len(rest) == 0 {
		return ""
	}
	u.options = true
	if arg.StartsNumber(rest[0]) {
		if err := arg.Quantity(rest[0], &u.quantity); err != "" {
			return err
		}
		rest = rest[1:]
	}
	var wait []byte
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		err := resp.Error("")
		switch {
		case arg.IsWord(word, "PEEK"):
			err = u.is(word, usePeek)
		case arg.IsWord(word, "PARTIAL"):
			err = u.is(word, usePartial)
		case arg.IsWord(word, "FORCE"):
			err = u.is(word, useForce)
		case arg.IsWord(word, "WAIT") && len(rest) > 0:
			wait, rest, err = rest[0], rest[1:], u.is(word, useWait)
		case arg.IsWord(word, "BLOCK") && len(rest) > 0:
			wait, rest, err = rest[0], rest[1:], u.is(word, useBlock)
		case arg.IsWord(word, "MEMBER") && len(rest) > 0 && u.member == nil:
			u.member, rest = rest[0], rest[1:]
		case arg.IsWord(word, "MS"):
			err = arg.Once(word, &u.millis)
		case arg.IsWord(word, "WITHDETAILS"):
			err = arg.Once(word, &u.withDetails)
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return err
		}
	}
	return u.parseWait(wait)
}

// is sets the mode to m. It returns a syntax error at word if another mode was set before.
func (u *useArgs) is(word []byte, m useMode) resp.Error {
	if u.mode != useWhole {
		return resp.SyntaxNear(word)
	}
	u.mode = m
	return ""
}

func (u *useArgs) parseWait(text []byte) (err resp.Error) {
	unit := time.Second
	if u.millis {
		unit = time.Millisecond
	}
	switch u.mode {
	case useBlock:
		u.wait, err = arg.Timeout(text, unit)
	case useWait:
		most, ok := arg.Int(text)
		switch {
		case !ok:
			return resp.Argument(resp.ErrNotInteger, "WAIT", text, "an integer of at least 0")
		case most < 0:
			return resp.ErrTimeoutNegative
		}
		u.wait = time.Duration(limit.SatMul(most, int64(unit)))
	}
	return err
}
