package limittest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/local"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/clients/go/limit"
)

// account is what one key has used of a policy. While there are live reservations, base is what was used before the first of them, and
// charges are those since. So a reservation that ends can be taken out of the past, as the server does it.
type account struct {
	key     string
	table   *local.Table
	base    *local.Table // nil if nothing is held
	charges []*charge
	held    map[string]*hold
}

// charge is a call that has taken units.
type charge struct {
	at     time.Time
	cost   int64
	member string
	peek   bool
}

// hold is a reservation.
type hold struct {
	charge *charge
	until  time.Time
	ended  bool // by the caller, or by its time to live
	late   bool // by its time to live
}

// These are the replies about a reservation.
const (
	settled   int64 = 1
	tooLate   int64 = 2
	wasEnded  int64 = 0
	isUnknown int64 = -1
)

// noPlaces is the error reply to reservations of places, and of clauses that count calls, which the fake does not have.
const noPlaces limit.ReplyError = "ERR limittest has no reservations with CC and CALLS"

// decide decides a call.
func (a *account) decide(c charge) rules.Decision {
	d := a.table.Decide(c.at, a.key, c.cost, c.member, c.peek)
	if a.base != nil && d.Refused == 0 && !c.peek {
		a.charges = append(a.charges, &c)
	}
	return d
}

// reserve decides a call that reserves its units for a number of milliseconds. A repeat takes nothing.
func (p *policy) reserve(a *account, c charge, id, millis string) (rules.Decision, error) {
	if slices.ContainsFunc(p.clauses, func(c rules.Clause) bool { return c.Family == rules.Lease || c.Calls }) {
		return rules.Decision{}, noPlaces
	}
	ttl, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || ttl < 1 {
		return rules.Decision{}, unknown
	}
	switch h := a.held[id]; {
	case h == nil:
	case h.ended:
		return rules.Decision{}, limit.ReplyError("IDENDED The reservation has ended")
	default:
		return a.table.Decide(c.at, a.key, 0, "", true), nil
	}
	before := a.table.Clone()
	d := a.table.Decide(c.at, a.key, c.cost, c.member, false)
	if d.Refused != 0 {
		return d, nil
	}
	if a.base == nil {
		a.base = before
	}
	a.charges = append(a.charges, &c)
	a.held[id] = &hold{charge: &c, until: c.at.Add(time.Duration(ttl) * time.Millisecond)}
	return d, nil
}

// lapse ends the reservations whose time to live is over at now.
func (a *account) lapse(now time.Time) {
	for _, h := range a.held {
		if !h.ended && !now.Before(h.until) {
			h.late = true
			a.end(h, 0)
		}
	}
}

// end leaves a reservation with used units, which are not more than it holds.
func (a *account) end(h *hold, used int64) {
	h.ended, h.charge.cost = true, used
	a.table = a.base.Clone()
	for _, c := range a.charges {
		a.table.Charge(c.at, a.key, c.cost, c.member)
	}
	for _, h := range a.held {
		if !h.ended {
			return
		}
	}
	a.base, a.charges = nil, nil
}

// settle answers RL.COMMIT, RL.CANCEL and RL.RENEW.
func (f *Fake) settle(words []string) (any, error) {
	const number = 3 // the index of the units or the time
	ends := words[0] == "RL.CANCEL"
	if len(words) < number || len(words) == number && !ends {
		return nil, unknown
	}
	n := int64(0)
	if !ends {
		var err error
		if n, err = strconv.ParseInt(words[number], 10, 64); err != nil || n < 0 {
			return nil, unknown
		}
	}
	if f.away {
		return nil, context.DeadlineExceeded
	}
	a := f.account(words)
	if a == nil {
		return isUnknown, nil
	}
	a.lapse(f.now)
	h := a.held[words[2]]
	switch {
	case words[0] == "RL.RENEW" && (h == nil || h.ended):
		return wasEnded, nil
	case words[0] == "RL.RENEW":
		h.until = f.now.Add(time.Duration(n) * time.Millisecond)
		return settled, nil
	case h == nil:
		return isUnknown, nil
	case h.late && words[0] == "RL.COMMIT":
		h.late = false
		a.take(f.now, n)
		return tooLate, nil
	case h.ended:
		h.late = false
		return wasEnded, nil
	}
	more := n - h.charge.cost
	a.end(h, min(n, h.charge.cost))
	if more > 0 {
		a.take(f.now, more)
	}
	return settled, nil
}

// take takes units beyond any limit.
func (a *account) take(now time.Time, units int64) {
	a.table.Charge(now, a.key, units, "")
	if a.base != nil {
		a.charges = append(a.charges, &charge{at: now, cost: units})
	}
}

// account returns the account that a settlement names: that of a policy, or that of inline limits. It is nil if there is none.
func (f *Fake) account(words []string) *account {
	if at := slices.Index(words, "POLICY"); at > 0 && at == len(words)-2 {
		if p, ok := f.policies[words[at+1]]; ok {
			return p.keys[words[1]]
		}
		return nil
	}
	for _, p := range f.policies {
		if a, ok := p.keys[words[1]]; ok {
			return a
		}
	}
	return nil
}
