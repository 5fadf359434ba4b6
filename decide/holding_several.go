package decide

import (
	"bytes"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
)

// decideHolding is decide for an entry that has reservations, or a window or bucket that is reserved.
func (s *Rounds) decideHolding(d *limit.Decision, e *entry.Entry, c *Clause) error {
	h, seed := &s.holding, uint64(0)
	if s.id != nil {
		seed = s.id.Seed
	}
	state := h.begin(e, s.now, seed, c.family())
	if s.as == repeating {
		r, found, _ := h.find(s.now, s.id)
		if !found {
			r.Ready = limit.MinInstant
		}
		return s.repeat(d, &state, &r, c)
	}
	reserves := s.reserves()
	if reserves && !c.reservable() {
		return reservation.ErrFamily
	}
	s.remembers = false
	h.active = true
	err := s.decideState(d, &state, c)
	h.active = false
	if err != nil {
		return err
	}
	if ends := h.ends(s.now); !d.Allowed() && ends > 0 && (s.ask.Ends == 0 || ends < s.ask.Ends) {
		s.ask.Ends = ends
	}
	if reserves && h.section.Live() >= int(s.ask.Reserve.Max) {
		s.full(d, c)
		return nil
	}
	id, takes := s.id, c.takes()
	if !s.charges() || !d.Allowed() || !takes {
		id = nil
	}
	promises := c.Bucket != nil && c.Bucket.Promises()
	r := idempotency.Record{Missing: s.ask.Missing, Ready: readyAt(s.now, d, promises)}
	if h.before == nil && (id == nil || !reserves) {
		s.remember(&state, h.records, s.now, id, r)
		return nil
	}
	var held reserved
	if id != nil && reserves {
		held = reserved{
			units: s.granted(c), until: s.now.Add(s.ask.Reserve.TTL), variant: c.Window != nil && c.Window.First, part: s.part(c),
		}
	}
	s.hold(e, s.now, !takes || s.as == peeking, id, &r, held)
	return nil
}

// family returns the family of the clause.
func (c *Clause) family() Family {
	switch {
	case c.Window != nil:
		return Window
	case c.Bucket != nil:
		return Bucket
	case c.Lease != nil:
		return Lease
	}
	return Cell
}

// reservable reports whether the limiter of the clause can give back exactly what it charges.
func (c *Clause) reservable() bool {
	return c.Window != nil && reservableWindow(c.Window) || c.Bucket != nil && reservableBucket(c.Bucket)
}

// full denies the clause c, because its key has too many live reservations.
func (s *Rounds) full(d *limit.Decision, c *Clause) {
	s.ask.Full, s.Action = true, Keep
	refused := int64(1)
	if s.as >= sharing && c.units() != nil {
		refused = *c.units()
	}
	s.holding.deny(d, s.now, refused)
}

// reserves reports whether the ask is a reservation.
func (s *Rounds) reserves() bool { return s.id != nil && s.ask.Reserve.TTL > 0 }

// granted returns the number of units that the clause c takes in this round.
func (s *Rounds) granted(c *Clause) int64 {
	if s.as == granting && c.units() != nil {
		return s.least
	}
	return *c.quantity()
}

// part returns which part of the reservation c is, one of the clauses of the ask.
func (s *Rounds) part(c *Clause) reservation.Part {
	part := reservation.Part{Calls: c.Fixed}
	for i := range s.ask.Clauses {
		switch other := &s.ask.Clauses[i]; {
		case other == c:
			part.Index = part.Of
			part.Of++
		case other.Lease == nil:
			part.Of++
		case !bytes.Equal(other.Lease.Member, s.id.Token):
			part.Member = other.Lease.Member
		}
	}
	return part
}

// Settlements settles a reservation of several limits at one instant. One goroutine reuses it for one ask
// after another, of family [SettleSeveral]. The caller calls Start, then Look with the entry of each key,
// Check, then Settle with each entry, and makes the change of the plan after each Settle. If Check or
// Settle returns an error, nothing may have changed: so the caller first calls Settle without making
// the changes.
type Settlements struct {
	ask    *Ask
	now    limit.Instant
	part   Ask    // the settlement of one key
	member []byte // that holds the places of the reservation
	of     uint8  // number of windows and buckets of the reservation; 0 if none is known
	live   bool   // a window or bucket has a live part
	units  bool   // there is a window or a bucket
}

// Start begins to settle a at now.
func (s *Settlements) Start(a *Ask, now limit.Instant) {
	*s = Settlements{ask: a, now: now, member: append(s.member[:0], a.ID.Token...)}
	a.Now, a.Settled, a.Lapsed, a.Repeated, a.Forgotten = now, outcomeOf(a.Settlement.Op), 0, false, 0
	a.Estimated, a.Used = 0, 0
}

// outcomeOf returns the outcome of an operation on an unknown reservation.
func outcomeOf(op reservation.Op) reservation.Outcome {
	if op == reservation.Renew {
		return reservation.Before
	}
	return reservation.Unknown
}

// Look notes what p says of e, the entry of a key, before the settlement.
func (s *Settlements) Look(p *Plan, e *entry.Entry) {
	k := e.Kind.Plain()
	s.units = s.units || k.IsWindow() || k.IsBucket()
	if !hasReservations(e) {
		return
	}
	h := &p.holding
	h.begin(e, s.now, s.ask.ID.Seed, SettleSeveral)
	hash := s.ask.ID.Hash(h.section.Seed)
	if at, live := h.section.Find(hash); live {
		part := h.section.At(at).Part
		s.of, s.live = max(s.of, part.Of), s.live || part.Of > 0
		if part.Member != nil {
			s.member = append(s.member[:0], part.Member...)
		}
	} else if r, found := h.remembered(s.now, &s.ask.ID, hash); found && r.State == idempotency.Lapsed {
		s.of = max(s.of, reservation.PartOf(&r).Of)
	}
}

// Check returns [reservation.ErrNumbers] if the call has another number of actual quantities than the
// reservation has windows and buckets.
func (s *Settlements) Check() error {
	if n := len(s.ask.Settlement.Actuals); n > 0 && s.of > 0 && n != int(s.of) {
		return reservation.ErrNumbers
	}
	return nil
}

// Settle settles what the key with the entry e has of the reservation, and fills in p. The outcome of
// the ask becomes that of its most important part. The error is [limit.ErrWrongType] if e is no limiter,
// or that of a charge beyond the reserved units.
func (s *Settlements) Settle(p *Plan, e *entry.Entry) error {
	p.Action = Keep
	if e.Kind.Plain().IsLease() {
		return s.settleLease(p, e)
	}
	if e.Kind != entry.None && !e.Kind.IsLimiter() {
		return limit.ErrWrongType
	}
	if !hasReservations(e) {
		return nil
	}
	a := &s.part
	a.Family, a.ID, a.Settlement, a.Window.LogMaxEntries = SettleSeveral, s.ask.ID, s.ask.Settlement, s.ask.Window.LogMaxEntries
	if err := p.oneHolding(e, s.now, a); err != nil {
		return err
	}
	s.ask.Settled = max(s.ask.Settled, a.Settled)
	s.ask.Lapsed += a.Lapsed
	if a.Estimated > s.ask.Estimated {
		s.ask.Estimated, s.ask.Used = a.Estimated, a.Used
	}
	return nil
}

// settleLease releases the places of the reservation in the lease set e, or renews them. If the
// reservation is not live, the places of its member belong to another call. A reservation of places
// alone is nothing but its leases.
func (s *Settlements) settleLease(p *Plan, e *entry.Entry) error {
	if !s.live && s.units {
		return nil
	}
	a := &s.part
	a.Family, a.ID = Lease, idempotency.Call{}
	a.Lease = concurrency.Call{Op: concurrency.Release, Member: s.member}
	if s.ask.Settlement.Op == reservation.Renew {
		a.Lease.Op, a.Lease.Lease = concurrency.Renew, s.ask.Settlement.TTL
	}
	if err := p.One(e, s.now, a); err != nil {
		return err
	}
	if a.Decision.Refused == 0 {
		s.ask.Settled = max(s.ask.Settled, reservation.Done)
	}
	return nil
}
