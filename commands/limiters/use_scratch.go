package limiters

import (
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// useScratch has the reusable memory of a worker for RL.USE. The zero value is ready.
type useScratch struct {
	useArgs
	policy  *policy.Policy
	applied policy.Applied
	// limits are the limits that apply, before the boost.
	limits *policy.Limits
	room   clause.Room // for the ask of a boosted clause
	// keys has the state keys of a batch. Its first lasting bytes are referred to until the batch
	// ends. The bytes after them belong to a single call of a script.
	keys    []byte
	lasting int
}

// maxUseKeys is the size of the largest buffer for state keys that a worker keeps. A batch that
// needs more gets another buffer, and the first lives as long as something refers to it.
const maxUseKeys = 64 << 10

// trim resets the keys at the end of a batch. If the buffer was large, it drops it, and clears m,
// whose clauses refer to it.
func (u *useScratch) trim(m *multiRoom) {
	u.lasting = 0
	if u.keys = u.keys[:0]; cap(u.keys) > maxUseKeys {
		u.keys = nil
		clear(m.clauses[:cap(m.clauses)])
	}
}

// find looks up the policy, which is nil if there is none, and the entries that apply to the key.
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

// blocks reports whether a block denies the call. A call that returns units passes.
func (u *useScratch) blocks() bool {
	return u.applied.Block != nil && u.applied.Exempt == nil && u.quantity >= 0
}

// blockedFor returns how long the block lasts from now on; [limit.NoRetry] if it has no end.
func (u *useScratch) blockedFor(now limit.Instant) time.Duration {
	if u.applied.Block.Until == limit.MaxInstant {
		return limit.NoRetry
	}
	return u.applied.Block.Until.Sub(now)
}

// lenient reports whether the call passes whatever is decided.
func (u *useScratch) lenient() bool { return u.applied.Exempt != nil || u.policy.Main.Shadow }

// looks reports whether the call changes nothing.
func (u *useScratch) looks() bool { return u.mode == usePeek || u.quantity == 0 }

// counted returns the counters for the reply, or nil if the call charges nothing.
func (u *useScratch) counted() *policy.Counts {
	if u.looks() || u.quantity < 0 {
		return nil
	}
	return u.policy.Counts
}

// answered counts the reply to the running call.
func (u *useScratch) answered(denied bool) {
	if n := u.counted(); n != nil {
		n.Answered(denied)
	}
}

// policyKey says how the key of a call about a policy is made from the name of the policy and its
// subject: it is the key of the first clause.
var policyKey = command.DerivedKey{
	Append: func(dst []byte, args [][]byte) []byte { return policy.AppendStateKey(dst, args[1], args[2], 1, false) },
	Last:   2,
	Extra:  16, // at most "#try:" and "#", of the clause and of the mark
}

// namesPolicy reports whether the running command names a policy.
func namesPolicy(c *command.Call) bool { return c.Cmd.Keys.Derived == &policyKey }

// counter returns n as the counter of a wait; nil if there is none.
func counter(n *policy.Counts) interface{ Answered(denied bool) } {
	if n == nil {
		return nil
	}
	return n
}

// countedBy returns the counters for the reply to the running command, or nil if the command
// names no policy or charges nothing.
func countedBy(c *command.Call) *policy.Counts {
	if !namesPolicy(c) {
		return nil
	}
	return command.Scratch[scratch](c).use.counted()
}

// waits reports whether the caller waits if there is no room.
func (u *useScratch) waits(c *command.Call) bool {
	return u.mode == useBlock && u.quantity > 0 && !u.lenient() && c.MayWait()
}

// check returns the error for an option that the limits do not support, or "".
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

// factor returns the factor of the boost, [policy.OneFactor] without a boost.
func (u *useScratch) factor() int64 {
	if u.applied.Boost == nil {
		return policy.OneFactor
	}
	return u.applied.Boost.Factor
}

// stateKey returns the key of the state of clause i, counted from 0. It is valid until the batch
// ends.
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

// hasCandidate reports whether the candidate is to decide the call: the policy has one, and
// neither an override nor an exemption applies to the key.
func (u *useScratch) hasCandidate() bool {
	return u.policy.Candidate != nil && u.applied.Override == nil && u.applied.Exempt == nil
}
