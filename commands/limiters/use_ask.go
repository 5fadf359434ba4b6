package limiters

import (
	"errors"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// ask returns the ask that decides the call under limits. It is the ask of a single family if there
// is only one clause and its family supports the mode; otherwise it has the form of RL.MULTI.
// candidate says that limits are those of the policy's candidate, which has its own state.
func (u *useScratch) ask(c *command.Call, limits *policy.Limits, candidate bool) (a *decide.Ask, err resp.Error) {
	if len(limits.Clauses) == 1 {
		a, err = u.one(c, &limits.Clauses[0], candidate)
	}
	if a == nil && err == "" {
		a, err = u.several(c, limits, candidate)
	}
	if a != nil {
		a.Millis, a.WithDetails = u.millis, u.withDetails
	}
	return a, err
}

// one returns the ask of cl, the only clause of a limit; nil if the family of cl does not support
// the mode.
func (u *useScratch) one(c *command.Call, cl *policy.Clause, candidate bool) (*decide.Ask, resp.Error) {
	if cl.Kind == clause.Cell && u.mode != useWhole && u.mode != useWait || cl.Kind == clause.Lease && u.quantity < 0 {
		return nil, ""
	}
	key := u.stateKey(c, 0, candidate)
	if u.applied.Boost != nil {
		cl.Boost(u.factor(), &u.room)
		return u.boosted(c, key)
	}
	switch cl.Kind {
	case clause.Bucket:
		a := c.NewAsk(decide.Bucket, key)
		a.Bucket = *cl.Bucket
		return a, u.setBucket(c, &a.Bucket)
	case clause.Window:
		a := c.NewAsk(decide.Window, key)
		a.Window = *cl.Window
		if cl.KeyPhase {
			a.Window.Phase = slidingwindow.PhaseOf(slidingwindow.HashKey(key), a.Window.Window)
		}
		return a, u.setWindow(c, &a.Window)
	case clause.Lease:
		a := c.NewAsk(decide.Lease, key)
		a.Lease = *cl.Lease
		err := u.setLease(c, &a.Lease)
		a.Lease.Peek = u.looks()
		return a, err
	}
	a := c.NewAsk(decide.Cell, key)
	a.Quota, a.Quantity = *cl.Quota, u.quantity
	return a, ""
}

// boosted returns the ask of the boosted clause in u.room, whose state is under key.
func (u *useScratch) boosted(c *command.Call, key []byte) (a *decide.Ask, err resp.Error) {
	err = u.set(c, &u.room)
	is := u.room.Clause(key)
	switch u.room.Kind {
	case clause.Bucket:
		a = c.NewAsk(decide.Bucket, key)
		a.Bucket = *is.Bucket
	case clause.Window:
		a = c.NewAsk(decide.Window, key)
		a.Window = *is.Window
	case clause.Lease:
		a = c.NewAsk(decide.Lease, key)
		a.Lease = *is.Lease
		a.Lease.Peek = u.looks()
	default:
		a = c.NewAsk(decide.Cell, key)
		a.Quota, a.Quantity = *is.Quota, u.quantity
	}
	return a, err
}

// several returns the ask of all clauses of limits, in the form of RL.MULTI.
func (u *useScratch) several(c *command.Call, limits *policy.Limits, candidate bool) (*decide.Ask, resp.Error) {
	m := &command.Scratch[scratch](c).multi
	m.grow(len(limits.Clauses))
	for i := range limits.Clauses {
		room := &m.calls[i]
		limits.Clauses[i].Boost(u.factor(), room)
		if err := u.set(c, room); err != "" {
			return nil, err
		}
		m.clauses[i] = room.Clause(u.stateKey(c, i, candidate))
		m.clauses[i].Peek = u.looks()
		m.clauses[i].Force = u.mode == useForce
		m.clauses[i].Quantity = u.quantity
	}
	a := c.NewAsk(decide.Several, nil)
	a.Clauses, a.Details, a.Partial = m.clauses, m.details, u.mode == usePartial && u.quantity > 0
	return a, ""
}

// set applies the options of the call to the clause in room, which is one of several or is boosted.
func (u *useScratch) set(c *command.Call, room *clause.Room) resp.Error {
	switch room.Kind {
	case clause.Bucket:
		return u.setBucket(c, &room.Bucket)
	case clause.Window:
		return u.setWindow(c, &room.Window)
	case clause.Lease:
		return u.setLease(c, &room.Lease)
	}
	room.Quantity = u.quantity
	return ""
}

// The charge modes of the families, by useMode. A mode that is not in a list charges the whole
// quantity.
var (
	bucketCharges = [...]tokenbucket.Charge{
		usePeek: tokenbucket.Peek, usePartial: tokenbucket.Partial, useForce: tokenbucket.Force, useBlock: tokenbucket.Whole,
	}
	windowCharges = [...]slidingwindow.Charge{
		usePeek: slidingwindow.Peek, usePartial: slidingwindow.Partial, useForce: slidingwindow.Force, useBlock: slidingwindow.Whole,
	}
)

// setBucket applies the options of the call to the token bucket b. A call with BLOCK that may not
// wait here is treated like one with WAIT 0.
func (u *useScratch) setBucket(c *command.Call, b *tokenbucket.Call) resp.Error {
	b.Quantity, b.Charge = u.quantity, bucketCharges[u.mode]
	switch u.mode {
	case useWait:
		b.MaxWait, b.Waits = u.wait, true
	case useBlock:
		if b.Waits = true; u.waits(c) && len(u.limits.Clauses) == 1 {
			b.Block, b.MaxWait = true, u.wait
			if u.wait == 0 {
				b.MaxWait = tokenbucket.NoLimit
			}
		}
	}
	if b.Mode == tokenbucket.Debt && b.Validate() != nil {
		return resp.ErrOverflow
	}
	return ""
}

func (u *useScratch) setWindow(c *command.Call, w *slidingwindow.Call) resp.Error {
	w.Quantity, w.Charge = u.quantity, windowCharges[u.mode]
	if w.Mode != slidingwindow.Log {
		return ""
	}
	w.LogMaxEntries = c.Server.Limits().LogMaxEntries
	if u.applied.Boost != nil {
		w.Limit = min(w.Limit, w.LogMaxEntries)
	}
	if err := w.Validate(); err != nil {
		return resp.ErrLogTooLong
	}
	return ""
}

// setLease applies the options of the call to the lease l. The call takes one place, whatever its
// quantity is. A call that returns units, with a negative quantity, leaves the places unchanged and
// is not refused for lack of a place.
func (u *useScratch) setLease(c *command.Call, l *concurrency.Call) resp.Error {
	l.Op, l.Member, l.MaxMembers = concurrency.Acquire, u.member, c.Server.Limits().MaxMembers
	l.Peek = u.quantity < 0
	if err := l.Validate(); errors.Is(err, concurrency.ErrMemberTooLong) {
		return resp.ErrMemberTooLong
	}
	return ""
}

// limitOf returns the limit of clause i, counted from 0, as the reply shows it.
func (u *useScratch) limitOf(i int) int64 {
	u.limits.Clauses[i].Boost(u.factor(), &u.room)
	switch u.room.Kind {
	case clause.Bucket:
		return u.room.Bucket.Capacity
	case clause.Window:
		return u.room.Window.Limit
	case clause.Lease:
		return u.room.Lease.Limit
	}
	return u.room.Quota.Limit()
}

// try decides the call under the policy's candidate, and counts whether that decision agrees with
// the policy's; denied says whether the policy has denied the call. An error of the candidate is
// not reported, and counts as a refusal.
func (u *useScratch) try(c *command.Call, denied bool) {
	limits := u.policy.Candidate.Limits
	u.limits = limits
	refused := true
	if err := u.check(); err == "" {
		if a, err := u.ask(c, limits, true); err == "" {
			c.Store.Decide(a)
			d := decisionOf(a)
			refused = a.Err != nil || d.Refused != 0
		}
	}
	if u.quantity < 0 {
		return
	}
	counts := u.policy.Counts
	switch {
	case !denied && !refused:
		counts.TryBoth.Add(1)
	case !denied:
		counts.TryOnlyOld.Add(1)
	case !refused:
		counts.TryOnlyNew.Add(1)
	default:
		counts.TryNeither.Add(1)
	}
}
