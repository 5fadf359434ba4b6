package ratelimit

import (
	"errors"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Ask sets the fields of a, an ask that decides the call under its limits at once: a call in the mode Block does not
// wait. The ask is about a single family if there is only one clause and an ask of its family supports the call, and
// otherwise, or for a reservation, a [decide.Several]. It refers to memory of d, which the next call of Ask or
// AskToWait reuses.
//
// The errors are [ErrNoMember], [ErrQuantities], [ErrPartial], [limit.ErrOverflow],
// [ErrPlaces], [slidingwindow.ErrLogTooLong], [concurrency.ErrMemberTooLong] and [reservation.ErrFamily].
func (d *Decider) Ask(l *Lookup, a *decide.Ask) error {
	return d.ask(l, l.Limits, 0, &d.main, a)
}

// AskToWait is Ask for a call that may wait and whose client can be parked. A bucket may reserve
// tokens that become available later; the caller then has to park the client until that time.
func (d *Decider) AskToWait(l *Lookup, a *decide.Ask) error {
	return d.ask(l, l.Limits, parks, &d.main, a)
}

// how is a set of flags that say how an ask differs from one that decides the limits in force at
// once.
type how uint8

const (
	// parks says that the client is parked while tokens are reserved for it.
	parks how = 1 << iota
	// candidate says that the limits are the limits of the policy's candidate, which has a state of
	// its own.
	candidate
)

// ask does what Ask does, for limits, with the memory of m. h says how the ask differs from the
// result of Ask.
func (s *steps) ask(l *Lookup, limits *policy.Limits, h how, m *clause.Memory, a *decide.Ask) error {
	a.DB, a.Err, a.Foreign, a.Lapsed, a.Reserve.TTL, a.Counts = l.DB, nil, 0, 0, 0, l.counts()
	a.Keep, a.Rank = 0, 0
	if a.ID.Token = nil; l.ID.Token != nil {
		a.ID, a.Reserve = l.ID, l.Reserve
		a.ID.Print = l.fingerprint()
	}
	if !l.fits(limits) {
		return ErrQuantities
	}
	if err := l.check(limits); err != nil {
		return err
	}
	if l.reserves() {
		if !reservable(limits) {
			return reservation.ErrFamily
		}
		return s.several(l, limits, h, m, a)
	}
	if c := &limits.Clauses[0]; len(limits.Clauses) == 1 {
		if n := l.quantity(0, c); l.single(c, n) {
			return s.one(l, c, n, h, a)
		}
	}
	return s.several(l, limits, h, m, a)
}

// single reports whether an ask of the family of c supports the call. c is the only clause, and n is
// its quantity.
func (l *Lookup) single(c *policy.Clause, n int64) bool {
	switch c.Kind {
	case clause.Cell:
		return l.Mode == Whole || l.Mode == Wait
	case clause.Lease:
		return n >= 0
	case clause.Unlimited:
		return false
	}
	return true
}

// one sets the fields of a, an ask about c, the only clause of a limit. n is the quantity of the
// clause.
func (s *steps) one(l *Lookup, c *policy.Clause, n int64, h how, a *decide.Ask) error {
	a.Key = s.keys.add(l, 0, h&candidate != 0)
	quota, window, bucket, lease := c.Quota, c.Window, c.Bucket, c.Lease
	if l.Applied.Boost != nil {
		c.Boost(l.factor(), &s.room)
		quota, window, bucket, lease = &s.room.Quota, &s.room.Window, &s.room.Bucket, &s.room.Lease
	}
	switch c.Kind {
	case clause.Bucket:
		a.Family, a.Bucket = decide.Bucket, *bucket
		l.keep(a, n, bucket.Capacity)
		return l.setBucket(&a.Bucket, n, h&parks != 0 && l.Keep.None())
	case clause.Window:
		a.Family, a.Window = decide.Window, *window
		if c.KeyPhase {
			a.Window.Phase = slidingwindow.PhaseOf(slidingwindow.HashKey(a.Key), a.Window.Window)
		}
		err := s.setWindow(l, &a.Window, n)
		l.keep(a, n, a.Window.Limit)
		return err
	case clause.Lease:
		a.Family, a.Lease = decide.Lease, *lease
		l.keep(a, n, lease.Limit)
		err := s.setLease(l, &a.Lease, n)
		a.Lease.Peek = l.Looks()
		return err
	}
	a.Family, a.Quota, a.Quantity = decide.Cell, *quota, n
	l.keep(a, n, quota.Limit())
	return nil
}

// keep sets the number of units that a has to leave for others. a asks for n units of a limit of
// most units.
func (l *Lookup) keep(a *decide.Ask, n, most int64) {
	if a.Keep = l.kept(n, most); a.Keep > 0 {
		a.Rank = l.Keep.Rank(most)
	}
}

// kept returns the number of units that a call for n units of a limit of most units has to leave for others. It is 0
// for a call that is forced, gives units back or takes none.
func (l *Lookup) kept(n, most int64) int64 {
	if n <= 0 || l.Mode == Force {
		return 0
	}
	return l.Keep.Of(most)
}

// several sets the fields of a, an ask about all clauses of limits.
func (s *steps) several(l *Lookup, limits *policy.Limits, h how, m *clause.Memory, a *decide.Ask) error {
	m.Grow(len(limits.Clauses))
	if err := s.fill(l, limits, h, m, 0, l.Looks()); err != nil {
		return err
	}
	a.Family, a.Key, a.Clauses, a.Details = decide.Several, nil, m.Clauses, m.Details
	a.Partial, a.Rank = l.Mode == Partial && l.Quantity > 0, l.Keep.Rank(m.Rooms[0].Limit())
	return nil
}

// fill sets the clauses of m from the index from on to the clauses of limits, with the options of
// the call. looks says that the call neither charges nor returns units.
func (s *steps) fill(l *Lookup, limits *policy.Limits, h how, m *clause.Memory, from int, looks bool) error {
	for i := range limits.Clauses {
		room, n := &m.Rooms[from+i], l.quantity(i, &limits.Clauses[i])
		limits.Clauses[i].Boost(l.factor(), room)
		if err := s.set(l, room, n); err != nil {
			return err
		}
		c := &m.Clauses[from+i]
		*c = room.Clause(s.keys.add(l, i, h&candidate != 0))
		c.Peek, c.Force, c.Quantity, c.Fixed, c.Counts = looks, l.Mode == Force, n, room.Calls, l.counts()
		c.Keep = l.kept(n, room.Limit())
	}
	return nil
}

// set applies the options of the call to the clause in room, which becomes a clause of a
// [decide.Several]. n is the quantity of the clause.
func (s *steps) set(l *Lookup, room *clause.Room, n int64) error {
	switch room.Kind {
	case clause.Bucket:
		return l.setBucket(&room.Bucket, n, false)
	case clause.Window:
		return s.setWindow(l, &room.Window, n)
	case clause.Lease:
		return s.setLease(l, &room.Lease, n)
	}
	room.Quantity = n
	return nil
}

// These are the ways of charging in a token bucket and in a sliding window, by the mode of the
// call. Modes that are not listed have the value 0 and charge the whole quantity.
var (
	bucketCharges = [...]tokenbucket.Charge{
		Peek: tokenbucket.Peek, Partial: tokenbucket.Partial, Force: tokenbucket.Force, Block: tokenbucket.Whole,
	}
	windowCharges = [...]slidingwindow.Charge{
		Peek: slidingwindow.Peek, Partial: slidingwindow.Partial, Force: slidingwindow.Force, Block: slidingwindow.Whole,
	}
)

// setBucket applies the options of the call and the quantity n to the token bucket b. parked says
// that the client is parked while tokens are reserved for it; if it is false, a call in the mode
// Block does not wait. The error is [limit.ErrOverflow].
func (l *Lookup) setBucket(b *tokenbucket.Call, n int64, parked bool) error {
	b.Quantity, b.Charge = n, bucketCharges[l.Mode]
	switch l.Mode {
	case Wait:
		b.MaxWait, b.Waits = l.MaxWait, true
	case Block:
		if b.Waits = true; parked {
			b.Block, b.MaxWait = true, l.MaxWait
			if l.MaxWait == 0 {
				b.MaxWait = tokenbucket.NoLimit
			}
		}
	}
	if b.Mode == tokenbucket.Debt && b.Validate() != nil {
		return limit.ErrOverflow
	}
	return nil
}

// setWindow applies the options of the call and the quantity n to the sliding window w. In the mode
// LOG it restricts a boosted limit to sw-log-max-entries. The error is
// [slidingwindow.ErrLogTooLong].
func (s *steps) setWindow(l *Lookup, w *slidingwindow.Call, n int64) error {
	w.Quantity, w.Charge = n, windowCharges[l.Mode]
	if w.Mode != slidingwindow.Log {
		return nil
	}
	w.LogMaxEntries = s.service.Bounds().LogMaxEntries
	if l.Applied.Boost != nil {
		w.Limit = min(w.Limit, w.LogMaxEntries)
	}
	if w.Validate() != nil {
		return slidingwindow.ErrLogTooLong
	}
	return nil
}

// setLease makes c an acquisition for the member of the call: of n places if the call has several quantities, and
// otherwise of one, or of those that the member holds. If n is negative, or if n is 0 and the call has several
// quantities, the call takes no place and is not refused for lack of one. A reservation holds its places until its own
// time has passed. The errors are [concurrency.ErrMemberTooLong] and [ErrPlaces].
func (s *steps) setLease(l *Lookup, c *concurrency.Call, n int64) error {
	c.Op, c.Member, c.MaxMembers = concurrency.Acquire, l.Member, s.service.Bounds().MaxMembers
	c.Peek = n < 0 || n == 0 && l.Quantities != nil
	if c.Places = 0; l.Quantities != nil {
		c.Places = max(n, 1)
	}
	c.Force = l.Mode == Force && !c.Peek
	if l.reserves() {
		c.Lease = l.Reserve.TTL
	}
	switch err := c.Validate(); {
	case errors.Is(err, concurrency.ErrMemberTooLong):
		return err
	case errors.Is(err, concurrency.ErrRange):
		return ErrPlaces
	}
	return nil
}
