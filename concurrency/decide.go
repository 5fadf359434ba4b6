package concurrency

import "github.com/cellserver/cellserver/limit"

// Decide decides c at now and writes the result to p. value is the stored value of the key, and
// mode is its mode, or [None] for an absent key. expiry is the expiry of the key, which another
// command may have set to another instant than the end of the last lease. Decide reads value and
// never writes to it.
//
// A limit of 0 refuses every Acquire, even if the member holds a lease; that lease ends when it
// expires. With any other limit, Acquire without Force is refused if the member would get more
// places than it has, and more than the limit would be in use. It may pass again when enough leases
// of other members have expired, which never happens if it asks for more places than the limit.
// After an admitted Acquire the member has the places that it asked for, even if it had more
// before, and after a successful Renew those that it had. Its lease ends c.Lease after now, even if
// it ended later before, and the key expires at the end of the last lease. A Release ends all
// places of the member. It does not change an expiry that another command has set.
//
// The error is [limit.ErrTooManyMembers] if the set has its maximum number of members and the limit
// would admit one more, and [limit.ErrWrongType] for an unknown mode. With an error, the plan
// changes nothing, and its decision is undefined. c must be valid ([Call.Validate]) and value must
// pass [Check].
func Decide(mode Mode, value []byte, expiry, now limit.Instant, c *Call, p *Plan) error {
	*p = Plan{Mode: Leases, Member: c.Member, Now: now}
	p.Decision.RetryAfter = limit.NoRetry
	s := set(value)
	switch {
	case mode == None:
		s = nil
	case !known(mode):
		return limit.ErrWrongType
	}
	h := holdings{last: limit.MinInstant, others: limit.MinInstant}
	h.look(s, c.Member, now)
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
	// used is the number of places of the live members.
	used int64
	// held says that the member of the call holds a live lease, and own is the number of its places.
	held bool
	own  int64
	// several says that the set has the mode Places, and keeps it even if the member of the call
	// has one place or none after the call.
	several bool
	// last is the latest expiry of all members, and others the latest expiry of all members other
	// than the member of the call. An expiry that is not after now means that there is no such live
	// lease.
	last, others limit.Instant
}

// look sets h for a call of member on s at now. h must be the holdings of an empty set.
func (h *holdings) look(s set, member []byte, now limit.Instant) {
	switch {
	case len(s) == 0:
	case isList(s):
		list(s).look(h, member, now)
	default:
		index(s).look(h, member, now)
	}
}

func (p *Plan) acquire(s set, h *holdings, c *Call) error {
	d := &p.Decision
	d.Limit = c.Limit
	d.Remaining = max(0, c.Limit-h.used)
	d.ResetAfter = after(h.last, p.Now)
	n := c.places(h.own)
	switch {
	case c.Limit == 0:
		d.Refused = 1
		return nil
	case !c.Force && n > h.own && h.used-h.own+n > c.Limit:
		d.Refused = 1
		if n <= c.Limit {
			d.RetryAfter = h.room(s, c, p.Now).Sub(p.Now)
		}
		return nil
	}
	switch {
	case !h.held && int64(h.live) >= c.maxMembers():
		return limit.ErrTooManyMembers
	case c.Peek:
		return nil
	}
	d.Remaining = max(0, c.Limit-(h.used-h.own+n))
	p.hold(h, c, n)
	return nil
}

// room returns the instant at which c, which is refused at now, has room within its limit because
// leases of other members have expired. c must not ask for more places than its limit.
func (h *holdings) room(s set, c *Call, now limit.Instant) limit.Instant {
	missing := h.used - h.own + c.places(h.own) - c.Limit
	if !h.held && !hasPlaces(s) {
		// Each live member has one place and is another member.
		return s.expiry(h.stored - h.live + int(missing) - 1)
	}
	return s.freed(missing, c.Member, now)
}

func (p *Plan) renew(h *holdings, c *Call) {
	p.Decision.ResetAfter = after(h.last, p.Now)
	if !h.held {
		p.Decision.Refused = 1
		return
	}
	p.hold(h, c, h.own)
}

// hold plans a lease of so many places for the member of c, which begins now.
func (p *Plan) hold(h *holdings, c *Call, places int64) {
	p.store(h, places)
	p.Effect = Holds
	p.Until, p.Places = c.until(p.Now), places
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
	p.store(h, 0)
	p.Expiry = expiry
	if expiry == h.last {
		p.Expiry = h.others
	}
}

// store plans to store the set, in which the member of the call has so many places.
func (p *Plan) store(h *holdings, places int64) {
	p.Action = Store
	if h.several || places > 1 {
		p.Mode = Places
	}
}
