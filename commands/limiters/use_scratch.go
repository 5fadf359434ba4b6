package limiters

import (
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// useScratch has the reusable memory of a worker for RL.USE, RL.EXPLAIN and RL.RESET, with the
// state of the running call. The zero value is ready for use.
type useScratch struct {
	useArgs
	policy  *policy.Policy
	applied policy.Applied
	// limits are the limits that apply to the key, before a boost.
	limits *policy.Limits
	room   clause.Room // the boosted clause
	// keys has the keys of states that the asks of a batch refer to. Its first lasting bytes are in
	// use until the batch ends. The bytes after them belong to one call of a script, and are
	// overwritten by the script's next call.
	keys    []byte
	lasting int
}

// maxUseKeys is the maximum size, in bytes, of the buffer for state keys that a worker keeps. A
// batch that needs more gets another buffer; the first one lives as long as an ask refers to it.
const maxUseKeys = 64 << 10

// trim clears keys at the end of a batch. It drops the buffer if it is larger than maxUseKeys, and
// clears m, whose clauses refer to it.
func (u *useScratch) trim(m *multiRoom) {
	u.lasting = 0
	if u.keys = u.keys[:0]; cap(u.keys) > maxUseKeys {
		u.keys = nil
		clear(m.clauses[:cap(m.clauses)])
	}
}

// find sets policy to the policy called u.name, or to nil if there is none. If there is one, find
// also sets the entries that apply to the key and the limits in force.
func (u *useScratch) find(c *command.Call) {
	switch u.policy = nil; {
	case len(u.keys) > maxUseKeys: // a transaction may have thousands of calls
		u.keys, u.lasting = nil, 0
	case c.Volatile: // a script may make any number of calls, and notes copy its keys
		u.keys = u.keys[:u.lasting]
	}
	if r := c.Server.Options.Policies; r != nil {
		u.policy = r.Table().Policy(u.name)
	}
	if u.policy != nil {
		u.policy.Find(u.key, c.Store.Now(), &u.applied)
		u.limits = u.policy.InForce(&u.applied)
	}
}

// blocks reports whether a block denies the call. It does not deny a call that returns units.
func (u *useScratch) blocks() bool {
	return u.applied.Block != nil && u.applied.Exempt == nil && u.quantity >= 0
}

// blockedFor returns the time from now to the end of the block; [limit.NoRetry] if the block has no
// end.
func (u *useScratch) blockedFor(now limit.Instant) time.Duration {
	if u.applied.Block.Until == limit.MaxInstant {
		return limit.NoRetry
	}
	return u.applied.Block.Until.Sub(now)
}

// lenient reports whether the call passes regardless of the decision, because of an exemption or a
// shadow policy.
func (u *useScratch) lenient() bool { return u.applied.Exempt != nil || u.policy.Main.Shadow }

// looks reports whether the call changes nothing: it is a PEEK or has the quantity 0.
func (u *useScratch) looks() bool { return u.mode == usePeek || u.quantity == 0 }

// counted returns the counters of the policy, or nil if the call charges nothing and so is not
// counted.
func (u *useScratch) counted() *policy.Counts {
	if u.looks() || u.quantity < 0 {
		return nil
	}
	return u.policy.Counts
}

// answered counts the reply to the running call as denied or allowed.
func (u *useScratch) answered(denied bool) {
	if n := u.counted(); n != nil {
		n.Answered(denied)
	}
}

// policyKey says how the derived key of a call is made from the name of a policy and the key after
// it: it is the state key of the first clause.
var policyKey = command.DerivedKey{
	Append: func(dst []byte, args [][]byte) []byte { return policy.AppendStateKey(dst, args[1], args[2], 1, false) },
	Last:   2,
	Extra:  16, // at most "#try:", "#" as the mark, and "#" with the number of the clause
}

// namesPolicy reports whether the first two arguments of the running command are a policy and a
// key.
func namesPolicy(c *command.Call) bool { return c.Cmd.Keys.Derived == &policyKey }

// counter returns n as the Counter of a [command.Decided]. For a nil n it returns a nil interface.
func counter(n *policy.Counts) interface{ Answered(denied bool) } {
	if n == nil {
		return nil
	}
	return n
}

// countedBy returns the counters of the policy that the running command names. It returns nil if
// the command names no policy or charges nothing.
func countedBy(c *command.Call) *policy.Counts {
	if !namesPolicy(c) {
		return nil
	}
	return command.Scratch[scratch](c).use.counted()
}

// waits reports whether the client is parked if there is no room for the call.
func (u *useScratch) waits(c *command.Call) bool {
	return u.mode == useBlock && u.quantity > 0 && !u.lenient() && c.MayWait()
}

// check returns the error for an option of the call that u.limits do not support; "" if there is
// none.
func (u *useScratch) check() resp.Error {
	for i := range u.limits.Clauses {
		cl := &u.limits.Clauses[i]
		switch {
		case cl.Lease != nil && u.member == nil:
			return errUseMember
		case cl.Lease != nil && u.mode == useForce:
			return errUseForce
		case u.mode == usePartial && cl.Bucket != nil && cl.Bucket.Mode == tokenbucket.Debt:
			return errUsePartial
		}
	}
	return ""
}

// factor returns the factor of the boost that applies; [policy.OneFactor] without a boost.
func (u *useScratch) factor() int64 {
	if u.applied.Boost == nil {
		return policy.OneFactor
	}
	return u.applied.Boost.Factor
}

// stateKey returns the key of the state of clause i, counted from 0, of the policy or of its
// candidate. The key is valid until the batch ends or, in a script, until the next call.
func (u *useScratch) stateKey(c *command.Call, i int, candidate bool) []byte {
	if i == 0 && !candidate && c.DerivedKey != nil {
		return c.DerivedKey
	}
	from := len(u.keys)
	if u.keys = policy.AppendStateKey(u.keys, u.name, u.key, i+1, candidate); !c.Volatile {
		u.lasting = len(u.keys)
	}
	return u.keys[from:len(u.keys):len(u.keys)]
}

// hasCandidate reports whether the candidate is to decide the call: the policy has a candidate, and
// no override and no exemption applies to the key.
func (u *useScratch) hasCandidate() bool {
	return u.policy.Candidate != nil && u.applied.Override == nil && u.applied.Exempt == nil
}
