package ratelimit

import (
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Lookup is a call, with the policy of the call and the entries that apply to its key at one
// instant.
type Lookup struct {
	Call
	// Rules are the policy with all its entries.
	Rules *policy.Policy
	// Applied has the entries of the policy that apply to the key.
	Applied policy.Applied
	// Limits are the limits in force for the key, before a boost.
	Limits *policy.Limits
	// Network is the text of the network whose state the call uses, such as 10.0.0.0/24, if the keys of the policy are
	// addresses, and otherwise nil. It is valid until the batch ends or, for a volatile call, until the next call.
	Network []byte
	// banned is the time for which a ban denies calls of the key, or 0. It is 0 with an exemption or SHADOW, because
	// then a ban does not deny calls.
	banned time.Duration
	// waited says that the call has [Consequences], which take the steps after the decision.
	waited bool
}

// state returns the part of the state keys after the policy: the key of the call, or its network.
func (l *Lookup) state() []byte {
	if l.Network != nil {
		return l.Network
	}
	return l.Key
}

// fingerprint returns the fingerprint of the arguments of the call. The clauses of the policy are not part of it, so a
// change of the policy between two calls does not change the fingerprint. An address counts as its network, because a
// client may send a call again from another port, or its address in another form.
func (l *Lookup) fingerprint() uint32 {
	var p idempotency.Print
	p.Bytes(l.Policy)
	p.Bytes(l.state())
	p.Int(l.Quantity)
	p.Int(int64(len(l.Quantities)))
	for _, n := range l.Quantities {
		p.Int(n)
	}
	p.Int(int64(l.Mode))
	p.Int(int64(l.MaxWait))
	p.Bytes(l.Member)
	if l.Reserve.TTL > 0 {
		p.Int(int64(l.Reserve.TTL))
	}
	if l.Class != nil {
		p.Bytes(l.Class)
	} else if !l.Keep.None() {
		p.Int(l.Keep.Units)
		p.Int(l.Keep.Percent)
	}
	return p.Sum()
}

// Blocked reports whether a block or a ban denies the call. They do not deny calls that return units, or keys with
// an exemption.
func (l *Lookup) Blocked() bool {
	return (l.Applied.Block != nil || l.banned > 0) && l.Applied.Exempt == nil && l.Quantity >= 0
}

// BanKey returns the key of the state of bans.
func (l *Lookup) BanKey() []byte { return policy.AppendBanKey(nil, l.Policy, l.state(), false) }

// deniedFor returns the time for which a block or a ban denies calls of the key: the longer of the two. It is
// [limit.NoRetry] for a block without an end.
func (l *Lookup) deniedFor(banned time.Duration) time.Duration {
	switch b := l.Applied.Block; {
	case b == nil:
		return banned
	case b.Until == limit.MaxInstant:
		return limit.NoRetry
	default:
		return max(b.Until.Sub(l.Now), banned)
	}
}

// Lenient reports whether the call passes even if the limits deny it, because of an exemption or a
// shadow policy. A call with limits of its own does not pass because of a shadow policy.
func (l *Lookup) Lenient() bool {
	return l.Applied.Exempt != nil || l.Rules.Main.Shadow && l.Own == nil
}

// Waits reports whether the call waits if there is no room for it: its mode is Block, it charges
// units, no block denies it, and no exemption or shadow policy lets it pass.
func (l *Lookup) Waits() bool {
	return l.Mode == Block && l.Quantity > 0 && !l.Blocked() && !l.Lenient()
}

// Counts returns the counters of the policy, or nil if they do not count the call.
func (l *Lookup) Counts() *policy.Counts {
	if !l.counted() {
		return nil
	}
	return l.Rules.Counts
}

// hasCandidate reports whether the candidate of the policy can decide the call, too. This requires
// that there is a candidate, that neither an override nor an exemption applies to the key, and that
// the call has a quantity for each clause of the candidate and no limits of its own.
func (l *Lookup) hasCandidate() bool {
	return l.Own == nil && l.Rules.Candidate != nil && l.Applied.Override == nil && l.Applied.Exempt == nil && l.fits(l.Rules.Candidate.Limits)
}

// tries reports whether the candidate of the policy decides the call, too. It decides only calls that charge or return
// units and do not wait.
func (l *Lookup) tries() bool { return l.hasCandidate() && !l.Looks() && l.Mode != Block }

// factor returns the factor of the boost that applies to the key, or [policy.OneFactor] without a
// boost.
func (l *Lookup) factor() int64 {
	if l.Applied.Boost == nil {
		return policy.OneFactor
	}
	return l.Applied.Boost.Factor
}

// quantity returns the quantity of the call for c, the clause with the index i of the limits that
// decide the call. For a concurrency limit the quantity is a number of places.
func (l *Lookup) quantity(i int, c *policy.Clause) int64 {
	n := l.Quantity
	if l.Quantities != nil {
		n = l.Quantities[i]
	} else if c.Kind == clause.Lease {
		n = min(n, 1)
	}
	if c.Calls {
		return min(max(n, 0), 1)
	}
	return n
}

// counting reports whether denied calls like l are charged: because of the flag COUNT of the policy, or because the
// call has limits of its own.
func (l *Lookup) counting() bool { return l.Rules.Main.Count || l.Own != nil }

// counts reports whether the call is charged even if the limits deny it.
func (l *Lookup) counts() bool { return l.counting() && l.Mode == Whole }

// reserves reports whether the call is a reservation.
func (l *Lookup) reserves() bool { return l.Reserve.TTL > 0 }

// reservable reports whether every clause of limits can give back exactly what was reserved.
func reservable(limits *policy.Limits) bool {
	for i := range limits.Clauses {
		c := &limits.Clauses[i]
		if c.Kind == clause.Cell || c.Kind == clause.Bucket && c.Bucket.Mode != tokenbucket.Greedy {
			return false
		}
	}
	return true
}

// findKeep sets Keep of a call with a class. The errors are [ErrNoClass], and [ErrKeepDebt] or [ErrKeepUnits] if the
// limits of the policy do not allow Keep. The limits of an override are not checked, because a caller must not get an
// error by its choice of the key. If an override has a bucket that lends tokens, the bucket lends none to such a call,
// and Units count for each clause of the override.
func (l *Lookup) findKeep() error {
	if l.Class != nil {
		percent, found := l.Rules.Main.Share(l.Class)
		if !found {
			return ErrNoClass
		}
		l.Keep = clause.Keep{Percent: percent}
	}
	if l.Keep.None() || l.Mode == Force || l.Quantity <= 0 {
		return nil // such a call has no use for Keep
	}
	limits := l.Rules.Main.Limits
	if l.Own != nil {
		limits = l.Own
	}
	clauses := limits.Clauses
	if l.Keep.Units > 0 && len(clauses) > 1 {
		return ErrKeepUnits
	}
	for i := range clauses {
		if b := clauses[i].Bucket; b != nil && b.Mode == tokenbucket.Debt {
			return ErrKeepDebt
		}
	}
	return nil
}

// fits reports whether the call has one quantity, or as many as limits have clauses.
func (l *Lookup) fits(limits *policy.Limits) bool {
	return l.Quantities == nil || len(l.Quantities) == len(limits.Clauses)
}

// needsMember reports whether the call takes places of the clause with the index i, which is a
// concurrency limit.
func (l *Lookup) needsMember(i int) bool { return l.Quantities == nil || l.Quantities[i] > 0 }

// check returns an error if limits do not support the mode of the call, or need a member that the
// call does not have: [ErrNoMember] or [ErrPartial]. The call must fit limits. check is so short that
// the compiler can inline it.
func (l *Lookup) check(limits *policy.Limits) error {
	for i := range limits.Clauses {
		c := &limits.Clauses[i]
		switch {
		case c.Lease != nil && l.Member == nil && l.needsMember(i):
			return ErrNoMember
		case l.Mode == Partial && c.Bucket != nil && c.Bucket.Mode == tokenbucket.Debt:
			return ErrPartial
		}
	}
	return nil
}
