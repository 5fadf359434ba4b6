package decide

import (
	"errors"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// settle decides a, an ask of family [Settle] or [SettleSeveral], on e. p.holding has the parts of e. The error is
// [limit.ErrWrongType] if e is no limiter, or that of a charge beyond the reserved units.
func (p *Plan) settle(e *entry.Entry, now limit.Instant, a *Ask) error {
	h := &p.holding
	a.Settled, a.Estimated, a.Used = outcomeOf(a.Settlement.Op), 0, 0
	if a.Family == Settle {
		a.Linked = false
	}
	switch {
	case e.Kind == entry.None:
		return nil
	case !e.Kind.IsLimiter():
		return limit.ErrWrongType
	case h.before == nil:
		return nil
	}
	hash := a.ID.Hash(h.section.Seed)
	if a.Family == Settle {
		if _, _, a.Linked = h.link(now, &a.ID, hash); a.Linked {
			return nil
		}
	}
	var err error
	if at, live := h.section.Find(hash); live {
		if hold := h.section.At(at); a.settles(hold.Part, hold.Print) {
			if err = a.misfit(); err == nil {
				err = p.settleLive(at, now, a)
			}
		}
	} else if r, found := h.remembered(now, &a.ID, hash); found && r.State != idempotency.Charged {
		if r.State != idempotency.Lapsed || a.settles(reservation.PartOf(&r), r.Print) {
			if r.State == idempotency.Lapsed {
				err = a.misfit()
			}
			if err == nil {
				err = p.settleEnded(hash, &r, now, a)
			}
		}
	}
	if err != nil {
		return err
	}
	p.hold(e, now, false, nil, nil, reserved{})
	a.ended(p)
	return nil
}

// settles reports whether a settles the reservation that has such a part. print is the fingerprint of the call that has
// made the reservation. A Settle settles a reservation of one limit, and a SettleSeveral one of several limits. If a is
// Linked, the reservation must be that of the call with the fingerprint of a.
func (a *Ask) settles(part reservation.Part, print uint32) bool {
	switch {
	case a.Family == Settle:
		return part.Of == 0
	case part.Of == 0 || part.Linked != a.Linked:
		return false
	}
	return !a.Linked || print == a.ID.Print
}

// misfit returns [reservation.ErrNumbers] if a has several actual quantities, but the reservation has one limit.
// [Settlements.Check] checks reservations of several limits.
func (a *Ask) misfit() error {
	if a.Family == Settle && len(a.Settlement.Actuals) > 0 {
		return reservation.ErrNumbers
	}
	return nil
}

// actual returns the number of units that a part of the reservation counts after the settlement a. units is that number
// if the limit of the part counts calls.
func (a *Ask) actual(part reservation.Part, units int64) int64 {
	switch {
	case a.Settlement.Op != reservation.Commit || part.Free:
		return 0
	case part.Calls:
		return units
	case a.Settlement.Actuals != nil && int(part.Index) < len(a.Settlement.Actuals):
		return a.Settlement.Actuals[part.Index]
	}
	return a.Settlement.Actual
}

// settleLive ends or renews the live reservation at a position of the section.
func (p *Plan) settleLive(at int, now limit.Instant, a *Ask) error {
	h, s := &p.holding, &p.holding.section
	a.Settled, h.changed = reservation.Done, true
	if a.Settlement.Op == reservation.Renew {
		s.Renew(at, now, now.Add(a.Settlement.TTL))
		return nil
	}
	hold, state := s.At(at), idempotency.Committed
	actual := a.actual(hold.Part, hold.Units)
	if a.Settlement.Op == reservation.Cancel {
		state = idempotency.Cancelled
	} else if !hold.Part.Calls {
		a.Estimated, a.Used = hold.Units, actual
	}
	kept := min(actual, hold.Units)
	if h.kind.IsWindow() {
		slot, back := s.SettleUnits(at, kept)
		h.giveBack(now, slot, back)
	} else {
		_, interval := tokenbucket.TAT(h.state)
		if s.SettleTokens(at, kept, interval); !hold.Void {
			h.rebalance()
		}
	}
	if hold.Part.Linked {
		s.EndLink(hold.Hash)
	}
	h.endNow(hold.Hash, hold.Record(state, 0), now, a)
	p.Frees = kept < hold.Units
	return p.charge(now, actual-kept, hold.Variant, a)
}

// endNow remembers a reservation that ends at now.
func (h *holding) endNow(hash idempotency.Hash, r idempotency.Record, now limit.Instant, a *Ask) {
	s := &h.section
	s.Memory, s.MaxCalls = a.ID.TTL, a.ID.Max
	r.Until = now.Add(s.Memory)
	h.end(hash, r)
	s.Keep(now)
	s.Until = max(s.Until, r.Until)
	h.changed = true
}

// settleEnded answers a for a reservation that has ended before, with the record r. A reservation that has passed its
// time is committed late, or ends for good.
func (p *Plan) settleEnded(hash idempotency.Hash, r *idempotency.Record, now limit.Instant, a *Ask) error {
	a.Settled = reservation.Before
	if r.State != idempotency.Lapsed || a.Settlement.Op == reservation.Renew {
		return nil
	}
	if r.State = idempotency.Cancelled; a.Settlement.Op == reservation.Commit {
		r.State, a.Settled = idempotency.Committed, reservation.Late
	}
	part := reservation.PartOf(r)
	if r.Missing = 0; part.Linked {
		p.holding.section.EndLink(hash)
	}
	actual := a.actual(part, 1)
	p.holding.endNow(hash, *r, now, a)
	return p.charge(now, actual, r.Variant, a)
}

// charge charges n units at now to the stored limiter, even beyond its limit. variant says that
// windows start at the first use of the key.
func (p *Plan) charge(now limit.Instant, n int64, variant bool, a *Ask) error {
	if n == 0 {
		return nil
	}
	h, frees := &p.holding, p.Frees
	h.active = true
	defer func() { h.active, p.Frees = false, p.Frees || frees }()
	if h.kind.IsWindow() {
		state := h.limiter(now, limit.MaxInstant, Window)
		most := a.Window.LogMaxEntries
		a.Window = slidingwindow.Stored(h.kind.WindowMode(), h.state)
		a.Window.Quantity, a.Window.Charge, a.Window.First, a.Window.LogMaxEntries = n, slidingwindow.Force, variant, most
		if variant {
			a.Window.Phase = 0
		}
		return chargeError(p.decideWindow(&a.Decision, &state, now, &a.Window))
	}
	call, ok := tokenbucket.Stored(h.kind.BucketMode(), h.state)
	if !ok {
		return reservation.ErrWarmup
	}
	state := h.limiter(now, limit.MaxInstant, Bucket)
	a.Bucket = call
	a.Bucket.Quantity, a.Bucket.Charge = n, tokenbucket.Force
	err := p.decideBucket(&a.Decision, &state, now, &a.Bucket)
	if p.bucket.Short = h.section.Short; p.bucket.Short {
		p.Expiry = p.Expiry.Add(tokenbucket.IdleLife)
	}
	return chargeError(err)
}

// chargeError returns the error of a charge beyond the reserved units, which names the quantity.
func chargeError(err error) error {
	if errors.Is(err, limit.ErrOverflow) {
		return reservation.ErrActual
	}
	return err
}
