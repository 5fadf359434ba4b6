package limiters

import (
	"bytes"
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/resp"
)

// isJoint reports whether word stands between two policies of a call.
func isJoint(word []byte) bool { return arg.IsWord(word, "AND") || arg.IsWord(word, "ANY") }

// nextPolicy is the field Next of the derived keys of RL.USE: it returns the index of the key that
// belongs to the policy after the one with the key args[at], or 0 if there is none. Between the two are
// quantities, AND or ANY, and the name of the policy.
func nextPolicy(args [][]byte, at int) int {
	for at++; at < len(args) && arg.StartsNumber(args[at]); {
		at++
	}
	if at+2 < len(args) && isJoint(args[at]) {
		return at + 2
	}
	return 0
}

// namesSeveral reports whether args, the arguments of a call of RL.USE with its name, name several
// policies.
func namesSeveral(args [][]byte) bool {
	return len(args) > 5 && nextPolicy(args, policyKeys.Last) > 0
}

// parse parses args, which name several policies and begin with the name of the command:
//
//	RL.USE policy key [quantity ...] <AND | ANY> policy key [quantity ...] ... [options]
//
// u must be the zero value, except for its room. The error is "" on success.
func (u *severalCall) parse(args [][]byte) resp.Error {
	var rest [][]byte
	for at := policyKeys.Last; at > 0; at = policyKeys.After(args, at) {
		i := len(u.parts)
		if i == policy.MaxCallClauses {
			return errTooManyPolicies
		}
		if err := u.join(args[at-2], i); err != "" {
			return err
		}
		one := useCall{Lookup: ratelimit.Lookup{Call: ratelimit.Call{Policy: args[at-1], Key: args[at], Quantity: 1}}}
		var err resp.Error
		if rest, err = one.parseQuantities(args[at+1:], &u.room.quantities[i]); err != "" {
			return err
		}
		if u.names(one.Policy, one.Key) {
			return resp.SyntaxNear(one.Key) + ": the same policy and key are named twice"
		}
		u.parts = u.room.parts[:i+1]
		u.parts[i] = ratelimit.Part{Lookup: one.Lookup}
	}
	if err := u.parseOptions(rest); err != "" {
		return err
	}
	return u.check()
}

// join sets u.any from word, the AND or ANY before the policy with the index i. It does nothing for
// the first policy.
func (u *severalCall) join(word []byte, i int) resp.Error {
	anyOf := arg.IsWord(word, "ANY")
	switch {
	case i == 0:
		return ""
	case i > 1 && anyOf != u.any:
		return resp.SyntaxNear(word) + ": AND and ANY do not mix"
	}
	u.any = anyOf
	return ""
}

// names reports whether a part has the policy called name and the key.
func (u *severalCall) names(name, key []byte) bool {
	for i := range u.parts {
		if p := &u.parts[i]; bytes.Equal(p.Key, key) && bytes.Equal(p.Policy, name) {
			return true
		}
	}
	return false
}

// check returns an error if the parts do not support the mode of the call or its reservation, or if
// the call has ANY and one of its quantities is negative. ANY would refund a negative quantity to
// the first policy, even if an earlier call charged another one.
func (u *severalCall) check() resp.Error {
	switch {
	case u.any && u.Mode == ratelimit.Partial:
		return resp.SyntaxNear([]byte("PARTIAL")) + ": with ANY one policy is charged for the whole quantity"
	case u.any && u.Mode == ratelimit.Block:
		return resp.SyntaxNear([]byte("BLOCK")) + ": with ANY no call waits"
	case u.own.window != nil:
		return resp.SyntaxNear([]byte("LIMIT")) + ": it is for a call of one policy"
	case u.Keep.Units > 0:
		return resp.SyntaxNear([]byte("KEEP")) + ": several policies keep a share of each limit, such as 30%"
	case u.any && u.id.Reserves():
		return resp.SyntaxNear([]byte("RESERVE")) + ": with ANY its settlement would not name the policy that pays"
	case u.any && u.id.Token != nil:
		return resp.SyntaxNear([]byte("ID")) + ": with ANY another policy might pay the second time"
	}
	least := u.parts[0].Least()
	for i := range u.parts {
		p := &u.parts[i]
		least = min(least, p.Least())
		if u.any && p.Least() < 0 {
			return resp.SyntaxNear(strconv.AppendInt(nil, p.Least(), 10)) + ": with ANY no quantity is negative"
		}
		if u.Mode == ratelimit.Partial && (p.Quantities != nil || p.Quantity != u.parts[0].Quantity) {
			return resp.SyntaxNear([]byte("PARTIAL")) + ": all policies need the same quantity, and only one"
		}
	}
	err := u.id.Check(u.unit(), least, true)
	u.Reserve.TTL = u.id.TTL
	return err
}
