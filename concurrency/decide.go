package concurrency

import "github.com/cellserver/cellserver/limit"

// Decide decides c at now and writes the result to p. value is the stored value of the key, and
// mode is its mode, or [None] for an absent key. expiry is the expiry of the key, which another
// command may have set to another instant than the end of the last lease. Decide reads value and
// never writes to it.
//
// A limit of 0 refuses every Acquire, even that of a member that holds a lease; that lease ends
// when it expires. With any other limit, Acquire is refused if the member holds no lease and the
// number of members that hold one is at or above the limit. It may pass again when enough leases
// have expired. After an admitted Acquire or a successful Renew the lease ends c.Lease after now,
// even if it ended later before, and the key expires at the end of the last lease. A Release does
// not change an expiry that another command has set.
//
// The error is [limit.ErrTooManyMembers] if the set has its maximum number of members but fewer
// than the limit, and [limit.ErrWrongType] for an unknown mode. With an error, the plan changes
// nothing, and its decision is undefined. c must be valid ([Call.Validate]) and value must pass
// [Check].
func Decide(mode Mode, value []byte, expiry, now limit.Instant, c *Call, p *Plan) error {
	*p = Plan{Mode: Leases, Member: c.Member, Now: now}
	p.Decision.RetryAfter = limit.NoRetry
	s := set(value)
	switch mode {
	case None:
		s = nil
	case Leases:
	default:
		return limit.ErrWrongType
	}
	h := look(s, c.Member, now)
	switch c.Op {
	case Release:
		p.release(&h, expiry)
	case Renew:
		p.renew(&h, c)
	default:
		return p.acquire(s, &h, c)
	}
	return nil
}

// holdings has the numbers that decide a call, for a set at one instant.
type holdings struct {
	// stored is the number of stored members, and live the number of those that hold a lease.
	stored, live int
	// held says that the member of the call holds a live lease.
	held bool
	// last is the latest expiry of all members, and others is the latest one of all members but
	// that of the call. An expiry that is not after now means that there is no such live lease.
	last, others limit.Instant
}

func look(s set, member []byte, now limit.Instant) holdings {
	h := holdings{stored: s.size()}
	h.live = h.stored - s.expired(now)
	h.last = s.expiry(h.stored - 1)
	h.others = h.last
	until, found := s.find(member)
	h.held = found && until > now
	if found && until == h.last {
		h.others = s.expiry(h.stored - 2)
	}
	return h
}

func (p *Plan) acquire(s set, h *holdings, c *Call) error {
	d := &p.Decision
	d.Limit = c.Limit
	live := int64(h.live)
	d.Remaining = max(0, c.Limit-live)
	d.ResetAfter = after(h.last, p.Now)
	switch {
	case c.Limit == 0:
		d.Refused = 1
		return nil
	case !h.held && live >= c.Limit:
		d.Refused = 1
		d.RetryAfter = s.expiry(h.stored - int(c.Limit)).Sub(p.Now)
		return nil
	case !h.held && live >= c.maxMembers():
		return limit.ErrTooManyMembers
	case c.Peek:
		return nil
	case !h.held:
		d.Remaining--
	}
	p.hold(h, c)
	return nil
}

func (p *Plan) renew(h *holdings, c *Call) {
	p.Decision.ResetAfter = after(h.last, p.Now)
	if !h.held {
		p.Decision.Refused = 1
		return
	}
	p.hold(h, c)
}

// hold plans a lease for the member of c, which begins now.
func (p *Plan) hold(h *holdings, c *Call) {
	p.Action = Store
	p.Effect = Holds
	p.Until = c.until(p.Now)
	p.Expiry = max(p.Until, h.others)
	p.Decision.ResetAfter = after(p.Expiry, p.Now)
}

func (p *Plan) release(h *holdings, expiry limit.Instant) {
	p.Decision.ResetAfter = after(h.last, p.Now)
	if !h.held {
		p.Decision.Refused = 1
		return
	}
	p.Effect = Gone
	p.Decision.ResetAfter = after(h.others, p.Now)
	if h.live == 1 {
		p.Action = Delete
		return
	}
	p.Action = Store
	p.Expiry = expiry
	if expiry == h.last {
		p.Expiry = h.others
	}
}
