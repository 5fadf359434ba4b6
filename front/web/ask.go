package web

import (
	"time"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/use"
)

// answer is the answer to a call.
type answer struct {
	headers.Answer
	// missing is the number of units that were not granted. A denied call that does not take a part lacks all of its
	// units.
	missing int64
}

// decided sets a to the reply to c.
func (a *answer) decided(c *use.Call, of *use.Answer) {
	a.Policy, a.Clauses = string(c.Policy), a.Clauses[:0]
	a.Binding = clauseOf(&of.Binding)
	for i := range of.Clauses {
		a.Clauses = append(a.Clauses, clauseOf(&of.Clauses[i]))
	}
	a.missing = of.Binding.Refused // 1 for a denial, but a number of units with PARTIAL
	a.Denied = a.missing != 0
	if c.Mode == "PARTIAL" {
		a.Denied = a.missing != 0 && a.missing >= c.Quantity // the call is denied if it has got no unit
	} else if a.Denied {
		a.missing = max(c.Quantity, 0)
	}
}

func clauseOf(d *use.Decision) headers.Clause {
	return headers.Clause{Denies: d.Refused != 0, Limit: d.Limit, Remaining: d.Remaining, RetryMillis: d.RetryMillis, ResetMillis: d.ResetMillis}
}

// describe adds the descriptions in limits to the clauses of a. limits are the limits that apply to the key. blocked
// says that a block applies to the key. known is false if there is no such policy; then the call was decided without
// limits. If the policy has changed since the decision, describe leaves the clauses unchanged.
func (a *answer) describe(limits []Limit, blocked, known bool) {
	a.Blocked = blocked && a.Denied
	if !known {
		a.Binding.Unlimited = true
		for i := range a.Clauses {
			a.Clauses[i].Unlimited = true
		}
		return
	}
	if len(limits) != len(a.Clauses) {
		return
	}
	for i := range limits {
		c := &a.Clauses[i]
		c.WindowMillis = int64((limits[i].Window + time.Millisecond - 1) / time.Millisecond)
		c.Concurrent, c.Unlimited = limits[i].Concurrent, limits[i].Unlimited
	}
	a.Binding.Unlimited = limits[0].Unlimited // which stands alone
}
