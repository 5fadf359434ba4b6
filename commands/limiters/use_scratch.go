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

// useScratch is what RL.USE needs of a worker. The zero value is ready.
type useScratch struct {
	useArgs
	policy  *policy.Policy
	applied policy.Applied
	// limits are those in force, before the boost.
	limits *policy.Limits
	room   clause.Room // of a clause that is boosted
	// keys has the state keys of the calls of a batch, of which the first lasting bytes are referred
	// to until it ends. What is behind them is that of a call of a script.
	keys    []byte
	lasting int
}

// maxUseKeys is the largest buffer for state keys that a worker keeps. A batch that needs more takes
// another one, and the first lasts as long as something refers to it.
const maxUseKeys = 64 << 10

// trim forgets the keys of a batch. If they were long m, whose clauses refer to them, does, too.
func (u *useScratch) trim(m *multiRoom) {
	u.lasting = 0
	if u.keys = u.keys[:0]; cap(u.keys) > maxUseKeys {
		u.keys = nil
		clear(m.clauses[:cap(m.clauses)])
	}
}

// find looks up the policy, nil if there is none, and what applies to the key.
func (u *useScratch) find(c *command.Call) {
	switch u.policy = nil; {
	case len(u.keys) > maxUseKeys: // a transaction may have thousands of calls
		u.keys, u.lasting = nil, 0
	case c.Volatile: // a script may call without end, and what is noted of it is copied
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

// blocks reports whether a block denies the call. What gives units back passes.
func (u *useScratch) blocks() bool {
	return u.applied.Block != nil && u.applied.Exempt == nil && u.quantity >= 0
}

// blockedFor is how long the block lasts from now on, [limit.NoRetry] if it has no end.
func (u *useScratch) blockedFor(now limit.Instant) time.Duration {
	if u.applied.Block.Until == limit.MaxInstant {
		return limit.NoRetry
	}
	return u.applied.Block.Until.Sub(now)
}

// lenient reports whether the call is allowed whatever is decided.
func (u *useScratch) lenient() bool { return u.applied.Exempt != nil || u.policy.Main.Shadow }

// looks reports whether the call changes nothing.
func (u *useScratch) looks() bool { return u.mode == usePeek || u.quantity == 0 }

// counted returns what the answer is counted by; nil if the call charges nothing.
func (u *useScratch) counted() *policy.Counts {
	if u.looks() || u.quantity < 0 {
		return nil
	}
	return u.policy.Counts
}

// answered counts the answer of the running call.
func (u *useScratch) answered(denied bool) {
	if n := u.counted(); n != nil {
		n.Answered(denied)
	}
}

// countedBy returns what the answer of the running command is counted by; nil for one that names no
// policy, or charges nothing.
func countedBy(c *command.Call) *policy.Counts {
	if !c.Cmd.Keys.Policy {
		return nil
	}
	return command.Scratch[scratch](c).use.counted()
}

// waits reports whether the caller waits if there is no room.
func (u *useScratch) waits(c *command.Call) bool {
	return u.mode == useBlock && u.quantity > 0 && !u.lenient() && c.MayWait()
}

// check reports what of the options the limits in force do not offer.
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

// factor is that of the boost, [policy.OneFactor] without one.
func (u *useScratch) factor() int64 {
	if u.applied.Boost == nil {
		return policy.OneFactor
	}
	return u.applied.Boost.Factor
}

// stateKey returns the key of the state of clause i, from 0, which is valid until the batch ends.
func (u *useScratch) stateKey(c *command.Call, i int, candidate bool) []byte {
	if i == 0 && !candidate && c.PolicyKey != nil {
		return c.PolicyKey
	}
	from := len(u.keys)
	if u.keys = policy.AppendStateKey(u.keys, u.name, u.key, i+1, candidate); !c.Volatile {
		u.lasting = len(u.keys)
	}
	return u.keys[from:len(u.keys):len(u.keys)]
}

// hasCandidate reports whether there is a candidate for the limits that apply, which are those of
// the policy itself.
func (u *useScratch) hasCandidate() bool {
	return u.policy.Candidate != nil && u.applied.Override == nil && u.applied.Exempt == nil
}
