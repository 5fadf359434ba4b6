package limiters

import (
	"bytes"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
)

// ownLimit has the arguments of LIMIT: a limit that a call of RL.USE brings with it. A call of Envoy's rate limit service
// whose descriptor has a limit becomes such a call.
type ownLimit struct{ most, window []byte }

// errOwnPolicy is the error for LIMIT with a policy that is none of a rule. Other policies decide alone how much a
// caller may use.
const errOwnPolicy resp.Error = "ERR LIMIT is for the policies of rls-config, which begin with " + rls.Prefix

// ownLimits are the limits of the latest calls with LIMIT, by their arguments.
type ownLimits map[ownNumbers]*policy.Limits

// ownNumbers are the arguments of LIMIT.
type ownNumbers struct {
	most, window int64
	millis       bool
}

// maxOwnLimits is the maximum number of limits that ownLimits keeps.
const maxOwnLimits = 64

// setOwn sets u.Own to the limits of the argument LIMIT, if there is one. It remembers them in kept. Both numbers are
// checked as those of the clause SW are. The error is "" on success.
func (u *useCall) setOwn(kept *ownLimits) resp.Error {
	if u.own.window == nil {
		return ""
	}
	if !bytes.HasPrefix(u.Policy, []byte(rls.Prefix)) {
		return errOwnPolicy
	}
	var is ownNumbers
	is.millis = u.millis
	var ok bool
	if is.most, ok = arg.Int(u.own.most); !ok {
		return resp.Argument(resp.ErrNotInteger, "LIMIT", u.own.most, "an integer of at least 0")
	}
	if is.window, ok = arg.Int(u.own.window); !ok {
		return resp.Argument(resp.ErrNotInteger, "LIMIT", u.own.window, "a window of at least 1")
	}
	l := (*kept)[is]
	if l == nil {
		var err resp.Error
		l, err = policy.ParseLimits([][]byte{[]byte("SW"), u.own.most, u.own.window, []byte("FIXED")}, u.millis, policy.Bounds{})
		if err != "" {
			return err
		}
		if *kept == nil || len(*kept) == maxOwnLimits {
			*kept = make(ownLimits, maxOwnLimits)
		}
		(*kept)[is] = l
	}
	u.Own = l
	return ""
}
