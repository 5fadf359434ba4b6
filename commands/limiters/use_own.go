package limiters

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

// ownLimit has the arguments of LIMIT: a limit that a call of RL.USE brings with it. A call of Envoy's rate limit service
// whose descriptor has a limit becomes such a call.
type ownLimit struct{ most, window []byte }

// errOwnPolicy is the error for LIMIT with a policy that no rule has created. Only the policies of rules let a call
// bring its own limit.
const errOwnPolicy resp.Error = "ERR LIMIT is for the policies of rls-config, which begin with " + policy.RulesPrefix

// errOwnMode is the error for LIMIT with an option that it excludes, because a denied call is charged, too.
const errOwnMode resp.Error = "ERR PARTIAL, WAIT, BLOCK and RESERVE are not for a call with LIMIT"

// ownLimits has the parsed limits of the latest calls with LIMIT.
type ownLimits map[ownNumbers]*policy.Limits

// ownNumbers are the two numbers of LIMIT: the maximum of units, and the window in milliseconds.
type ownNumbers struct{ most, window int64 }

// maxOwnLimits is the maximum number of limits that ownLimits keeps.
const maxOwnLimits = 64

// setOwn sets u.Own to the limits of the argument LIMIT, if there is one, and remembers them in kept. Both numbers have
// the bounds of the clause SW. The policy need not exist, but its name must be valid, because an invalid name could
// lead to the state keys of another policy. The error is "" on success.
func (u *useCall) setOwn(kept *ownLimits) resp.Error {
	if u.own.window == nil {
		return ""
	}
	if !bytes.HasPrefix(u.Policy, []byte(policy.RulesPrefix)) {
		return errOwnPolicy
	}
	if err := policy.CheckName(u.Policy); err != nil {
		return resp.Error("ERR " + err.Error())
	}
	is, err := u.ownNumbers()
	if err != "" {
		return err
	}
	l := (*kept)[is]
	if l == nil {
		l = policy.FixedWindowMillis(is.most, is.window)
		if *kept == nil || len(*kept) == maxOwnLimits {
			*kept = make(ownLimits, maxOwnLimits)
		}
		(*kept)[is] = l
	}
	u.Own = l
	return ""
}

// ownNumbers returns the numbers of the argument LIMIT. The error is "" on success.
func (u *useCall) ownNumbers() (is ownNumbers, _ resp.Error) {
	most, ok := arg.Int(u.own.most)
	if !ok || most < 0 {
		return is, resp.Argument(resp.ErrNotInteger, "LIMIT", u.own.most, "an integer of at least 0")
	}
	window, ok := arg.Int(u.own.window)
	if window = limit.SatMul(window, int64(u.unit())); !ok || window < 1 || window > int64(slidingwindow.MaxWindow) {
		return is, resp.Argument(resp.ErrNotInteger, "LIMIT", u.own.window, "a window of at least 1, in seconds, or with MS in milliseconds, and at most 73 years")
	}
	return ownNumbers{most, window / int64(time.Millisecond)}, ""
}
