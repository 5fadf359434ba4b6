package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// holding is the part of a plan about an entry that has reservations before or after the change.
type holding struct {
	// section has the reservations after the change, and before is the stored section; nil if there
	// is none. records is the stored section of the remembered calls.
	section         reservation.Section
	before, records []byte
	// kind and stored are the stored kind and state of the limiter. state is the state on which the
	// call is decided: stored, or a copy in work in which reservations have ended.
	kind                entry.Kind
	stored, state, work []byte
	// copied says that state is in work. changed says that state differs from stored, or that section has to be stored.
	// unused says that the limiter is as if it had never been used, and that the call was decided as if the key did not
	// exist.
	copied, changed, unused bool
	// active is true while a family decides on state.
	active bool
	// keeps says that the limiter has state after the change, and adds, that a reservation is added.
	keeps, adds bool
	// remembers says that a call with ID is remembered. drops says that no reservation is left
	// after the change, live or ended.
	remembers, drops bool
	// ended has the reservations that the change ends. lapses says that some have passed their
	// time, and lapsed is their number: a reservation of several limits counts only at the key of
	// its first limit.
	ended  []idempotency.Added
	lapses bool
	lapsed uint32
	gives  []slidingwindow.Given // the units that ended reservations give back; lapse reuses this memory
	// begun says that begin was called since the last forget.
	begun bool
}

// reserved has the units that a charged call reserves. Its zero value is for a call that is not a
// reservation.
type reserved struct {
	units   int64
	until   limit.Instant
	variant bool
	part    reservation.Part
	link    bool     // whether the key gets a link to keys
	keys    [][]byte // the keys that the link names: see reservation.Link
}

// is reports whether the call is a reservation, of some units or without units.
func (r *reserved) is() bool { return r.units > 0 || r.part.Free }

// maxEnded is the maximum capacity of the memory for ended reservations that a plan keeps.
const maxEnded = 1024

// begin separates e into its parts, ends the reservations that have passed their time at now, and
// returns the limiter without reservations and remembered calls, as a call of the family f sees it: see
// limiter. It does not change e. seed is the key of the hashes if e has none.
func (h *holding) begin(e *entry.Entry, now limit.Instant, seed uint64, f Family) entry.Entry {
	h.begun = true
	state, records, before := entry.Parts(e)
	h.before, h.records, h.kind, h.stored, h.state = before, records, state.Kind, state.Value, state.Value
	h.copied, h.changed, h.unused, h.adds, h.remembers, h.drops = false, false, false, false, false, false
	h.ended, h.lapses, h.lapsed = h.ended[:0], false, 0
	s := &h.section
	s.Load(before)
	if before == nil {
		if s.Seed = seed; records != nil {
			s.Seed = idempotency.Seed(records)
		}
		return state
	}
	if s.Due(now) {
		h.lapse(now)
	}
	return h.limiter(now, state.Expiry, f)
}

// limiter returns the limiter as a call of the family f sees it at now: of kind None if it belongs to the
// family and is as if it had never been used. For other families the key keeps its kind as long as it
// remembers reservations.
func (h *holding) limiter(now, expiry limit.Instant, f Family) entry.Entry {
	own := f == Window && h.kind.IsWindow() || (f == Bucket || f == Cancel) && h.kind.IsBucket()
	if h.unused = own && h.idle(now) <= now; h.unused {
		return entry.Entry{Expiry: expiry}
	}
	return entry.Entry{Kind: h.kind, Expiry: expiry, Value: h.state}
}

// idle returns the instant from which the limiter is as if it had never been used.
func (h *holding) idle(now limit.Instant) limit.Instant {
	switch {
	case h.kind.IsWindow():
		return now.Add(slidingwindow.Reset(h.kind.WindowMode(), h.state, now))
	case h.kind.IsBucket():
		return tokenbucket.Idle(h.kind.BucketMode(), h.state, now, h.section.Short)
	}
	return limit.MaxInstant
}

// ends returns the time until the first live reservation passes its time; 0 if there is none.
func (h *holding) ends(now limit.Instant) time.Duration {
	if first := h.section.NextEnd(); first != limit.MaxInstant {
		return first.Sub(now)
	}
	return 0
}

// own copies the state, so that it can be changed.
func (h *holding) own() {
	if !h.copied {
		h.work = append(h.work[:0], h.state...)
		h.state, h.copied = h.work, true
	}
}

// lapse ends the reservations that have passed their time at now.
func (h *holding) lapse(now limit.Instant) {
	h.own()
	h.changed, h.lapses = true, true
	tokens, isLog := false, h.kind == entry.OfWindow(slidingwindow.Log)
	h.gives = h.gives[:0]
	h.section.Lapse(now, h.kind.IsBucket(), func(r *reservation.Hold) {
		if r.Part.Index == 0 {
			h.lapsed++
		}
		switch {
		case isLog && h.counts(now, r.At):
			h.gives = append(h.gives, slidingwindow.Given{Slot: r.At, Units: r.Returns(0)})
		case isLog:
		case h.kind.IsWindow():
			h.giveBack(now, r.At, r.Returns(0))
		default:
			tokens = tokens || !r.Void
		}
		if until := r.End.Add(h.section.Memory); until > now {
			h.ended = append(h.ended, idempotency.Added{Hash: r.Hash, Record: r.Record(idempotency.Lapsed, until)})
		}
	})
	if tokens {
		h.rebalance()
	}
	if isLog {
		slices.SortFunc(h.gives, func(a, b slidingwindow.Given) int { return cmp.Compare(a.Slot, b.Slot) })
		slidingwindow.GiveBackAll(h.state, h.gives)
	}
}

// counts reports whether a slot of a LOG, an instant, still counts at now. A slot that no longer
// counts may have been removed, and its units would then be taken from the next slot.
func (h *holding) counts(now, slot limit.Instant) bool {
	return now.Sub(slot) < slidingwindow.Stored(slidingwindow.Log, h.state).Window
}

// giveBack takes n units from a slot of the window, or all units of the slot if it has fewer, and
// returns their number.
func (h *holding) giveBack(now, slot limit.Instant, n int64) int64 {
	mode := h.kind.WindowMode()
	if n <= 0 || mode == slidingwindow.Log && !h.counts(now, slot) {
		return 0
	}
	h.own()
	return slidingwindow.GiveBack(mode, h.state, slot, n)
}

// rebalance computes the TAT of the bucket from the reservations and stores it.
func (h *holding) rebalance() {
	h.own()
	_, interval := tokenbucket.TAT(h.state)
	tokenbucket.PutTAT(h.state, h.section.TAT(interval))
}

// find looks for the token of id among the reservations and the remembered calls of the key. The error is
// [ErrReused] or [reservation.ErrEnded].
func (h *holding) find(now limit.Instant, id *idempotency.Call) (r idempotency.Record, found bool, err error) {
	hash := id.Hash(h.section.Seed)
	if at, live := h.section.Find(hash); live {
		hold := h.section.At(at)
		r, found = idempotency.Record{Print: hold.Print, Missing: hold.Missing, Ready: hold.Ready}, true
	} else {
		r, found = h.remembered(now, id, hash)
	}
	switch {
	case !found:
		return r, false, nil
	case r.Print != id.Print:
		return r, true, ErrReused
	case r.State != idempotency.Charged:
		return r, true, reservation.ErrEnded
	}
	return r, true, nil
}

// link returns the position of the link of the reservation id with the given hash, and the fingerprint of the call. A
// link is valid only if the key still has its own part of that reservation, live or ended.
func (h *holding) link(now limit.Instant, id *idempotency.Call, hash idempotency.Hash) (at int, print uint32, found bool) {
	at, print, found = h.section.FindLink(hash)
	if !found {
		return 0, 0, false
	}
	if i, live := h.section.Find(hash); live {
		hold := h.section.At(i)
		return at, print, hold.Part.Linked && hold.Print == print
	}
	r, found := h.remembered(now, id, hash)
	return at, print, found && r.State == idempotency.Lapsed && reservation.PartOf(&r).Linked && r.Print == print
}

// remembered returns the record of the call id. hash is the hash of its token.
func (h *holding) remembered(now limit.Instant, id *idempotency.Call, hash idempotency.Hash) (r idempotency.Record, found bool) {
	for i := range h.ended {
		if h.ended[i].Hash == hash {
			return h.ended[i].Record, true
		}
	}
	if h.records == nil {
		return r, false
	}
	return idempotency.Find(h.records, now, id)
}

// end adds the record of an ended reservation after all others, so that it is forgotten last. If an earlier step of the
// same change has ended the reservation, end replaces that record.
func (h *holding) end(hash idempotency.Hash, r idempotency.Record) {
	h.ended = slices.DeleteFunc(h.ended, func(a idempotency.Added) bool { return a.Hash == hash })
	h.ended = append(h.ended, idempotency.Added{Hash: hash, Record: r})
}

// forget drops the references to the value.
func (h *holding) forget() {
	if !h.begun {
		return
	}
	h.begun = false
	h.before, h.records, h.stored, h.state = nil, nil, nil, nil
	if cap(h.work) > maxSpare {
		h.work = nil
	}
	if cap(h.ended) > maxEnded {
		h.ended, h.gives = nil, nil
	}
	h.section.Trim(maxSpare)
}

// oneHolding decides on an ask that reserves or settles, or on any ask if the entry has reservations.
func (p *Plan) oneHolding(e *entry.Entry, now limit.Instant, a *Ask) error {
	h := &p.holding
	a.Repeated, a.Forgotten, a.Lapsed, a.Full = false, 0, 0, false
	p.Action, p.Frees, p.remembers, p.holds = Keep, false, false, false
	state := h.begin(e, now, a.ID.Seed, a.Family)
	if a.Family == Settle || a.Family == SettleSeveral {
		return p.settle(e, now, a)
	}
	looks := a.OnlyLooks()
	id := &a.ID
	if id.Token == nil || looks {
		id = nil
	}
	reserves := id != nil && a.Reserve.TTL > 0
	if reserves && !a.reservable() {
		return reservation.ErrFamily
	}
	if id != nil {
		if r, found, err := h.find(now, id); err != nil {
			return err
		} else if found {
			return p.repeatOne(&state, now, a, &r)
		}
	}
	if reserves && h.section.Full(a.Reserve.Max) {
		return p.full(&state, now, a)
	}
	h.active = true
	err := p.one(&state, now, a)
	h.active = false
	if err != nil {
		return err
	}
	if a.Decision.Refused > 0 {
		a.Ends = h.ends(now)
	}
	r := idempotency.Record{Ready: readyAt(now, &a.Decision, a.Family == Bucket && a.Bucket.Promises())}
	granted := a.granted(&r)
	if p.counted {
		r, granted = deniedRecord, 1
	}
	if granted == 0 {
		id, reserves = nil, false
	}
	var held reserved
	if reserves {
		held = reserved{units: granted, until: now.Add(a.Reserve.TTL), variant: a.Family == Window && a.Window.First}
	}
	if h.before == nil && !reserves {
		p.remember(&state, h.records, now, id, r)
		return nil
	}
	p.hold(e, now, looks, id, &r, held)
	a.ended(p)
	return nil
}

// ended adds the reservations and the remembered calls that p ends or forgets to the answer.
func (a *Ask) ended(p *Plan) {
	if !p.holds {
		return
	}
	if a.Lapsed = p.holding.lapsed; p.memory.after {
		a.forgot(&p.memory.records)
	}
}

// reservable reports whether the limiter of a can give back exactly the units that a charges.
func (a *Ask) reservable() bool {
	switch a.Family {
	case Window:
		return reservableWindow(&a.Window)
	case Bucket:
		return reservableBucket(&a.Bucket)
	}
	return false
}

func reservableWindow(c *slidingwindow.Call) bool { return c.Quantity > 0 && !c.Penalize }

func reservableBucket(c *tokenbucket.Call) bool {
	return c.Mode == tokenbucket.Greedy && c.Quantity > 0
}

// granted returns the number of units that a was granted: 0 if a was denied or takes nothing, and 1 if the number is
// not known. If a was granted only a part, it sets r.Missing to the number of units that were not granted.
func (a *Ask) granted(r *idempotency.Record) int64 {
	asked := int64(1)
	switch a.Family {
	case Window:
		asked = a.Window.Quantity
	case Bucket:
		asked = a.Bucket.Quantity
	}
	if a.shared() > 0 {
		r.Missing = a.Decision.Refused
		return asked - r.Missing
	}
	if a.Decision.Refused > 0 || a.Family == Bucket && a.Bucket.Denied {
		return 0
	}
	if asked <= 0 {
		return 1 // a refund is a change that is remembered, too
	}
	return asked
}

// full denies a, because the key has too many live reservations. RetryAfter is at least the time until the
// first of them has passed its time.
func (p *Plan) full(state *entry.Entry, now limit.Instant, a *Ask) (err error) {
	if a.Family == Window {
		c := a.Window
		c.Charge = slidingwindow.Peek
		err = p.decideWindow(&a.Decision, state, now, &c)
	} else {
		c := a.Bucket
		c.Charge = tokenbucket.Peek
		err = p.decideBucket(&a.Decision, state, now, &c)
	}
	p.Action, a.Full = Keep, true
	p.holding.deny(&a.Decision, now, max(1, a.shared()))
	return err
}

// deny turns d, the decision of the limiter, into the denial of refused units because the key has too many
// live reservations.
func (h *holding) deny(d *limit.Decision, now limit.Instant, refused int64) {
	if d.Refused == 0 || d.RetryAfter != limit.NoRetry {
		d.RetryAfter = max(d.RetryAfter, h.ends(now))
	}
	d.Refused = refused
}

// refundUnheld gives back the units of c, a call with a negative quantity on a window in which the
// key has reservations. It takes units that belong to no reservation first, and then units of the
// newest reservations, which can no longer give these units back.
func (p *Plan) refundUnheld(d *limit.Decision, e *entry.Entry, now limit.Instant, c *slidingwindow.Call) error {
	h := &p.holding
	h.own()
	mode, n := h.kind.WindowMode(), limit.SatSub(0, c.Quantity)
	first := limit.MinInstant
	if mode == slidingwindow.Log {
		first = now.Add(-c.Window) // units charged before this instant no longer count, reserved or not
	}
	n -= slidingwindow.TakeUnheld(mode, h.state, now, n, h.section.HeldFrom(first))
	h.section.TakeHeld(n, func(slot limit.Instant, units int64) int64 { return h.giveBack(now, slot, units) })
	is := entry.Entry{Kind: h.kind, Expiry: e.Expiry, Value: h.state}
	look := *c
	look.Quantity = 0
	w := &p.window
	if err := slidingwindow.Decide(mode, is.Value, is.Expiry, now, &look, w); err != nil {
		return err
	}
	*d = w.Decision
	d.Refused, d.RetryAfter = 0, limit.NoRetry
	p.Action, p.Frees, h.changed = Keep, true, true
	return nil
}

// hold completes a plan about e, whose limiter a family has decided on at now. looks says that the
// call only looks. If id is not nil, the call was charged, and is remembered with the record r, or
// as the reservation held.
func (p *Plan) hold(e *entry.Entry, now limit.Instant, looks bool, id *idempotency.Call, r *idempotency.Record, held reserved) {
	h, s := &p.holding, &p.holding.section
	if p.Action == Keep && id == nil && (!h.changed || looks) {
		return
	}
	if held.is() {
		s.Memory, s.MaxCalls = id.TTL, id.Max
	}
	idle := e.Expiry
	switch {
	case p.Action == Keep && h.changed:
		if h.keeps, idle = true, h.idle(now); idle <= now && s.Until <= now && !held.is() {
			p.Action, p.Frees = Remove, true
			return
		}
		p.Kind = h.kind
	case p.Action == Keep:
		h.keeps, p.Kind = true, h.kind
	case p.Action == Remove && s.Until <= now && held.units == 0:
		return
	case p.Action == Remove && p.by == Window:
		h.own()
		h.state = slidingwindow.Clear(h.kind.WindowMode(), h.state)
		h.keeps, h.changed, idle, p.Kind = true, true, now, h.kind
		s.Void()
	case p.Action == Remove:
		p.bucket.Action, p.Kind, idle = tokenbucket.Store, entry.OfBucket(p.bucket.Mode), now
		h.keeps = false
		h.charged(p, now, false)
	default:
		h.keeps, idle = false, p.Expiry
		h.charged(p, now, held.units > 0)
	}
	if held.is() {
		p.add(now, id, r, held)
		id = nil
	}
	p.Action, p.Frees = Store, p.Frees || h.lapses
	h.drops = s.Until <= now && s.Live() == 0
	p.Expiry = idle
	if idle != entry.NoExpiry {
		p.Expiry = min(max(idle, s.Until), entry.NoExpiry-1)
	}
	p.recall(now, id, r)
	if s.Records = p.memory.after; s.Records || !h.drops {
		p.Kind = p.Kind.Remembering()
	}
	p.remembers, p.holds = true, true
}

// recall plans to remember the ended reservations and, unless id is nil, the call with the record r.
func (p *Plan) recall(now limit.Instant, id *idempotency.Call, r *idempotency.Record) {
	h, m := &p.holding, &p.memory
	bounds := idempotency.Call{TTL: h.section.Memory, Max: h.section.MaxCalls}
	if id != nil {
		bounds.TTL, bounds.Max = id.TTL, id.Max
		r.Print, r.Until = id.Print, now.Add(id.TTL)
		h.ended = append(h.ended, idempotency.Added{Hash: id.Hash(h.section.Seed), Record: *r})
		h.remembers = true
	}
	m.records.Forgotten = 0
	m.before = h.records != nil
	if m.after = m.before || len(h.ended) > 0; m.after {
		m.records.DecideAll(h.records, now, &bounds, h.section.Seed, h.ended)
		// A section without records remains while there are reservations, so that deltas need not add or remove a
		// section.
		m.after = !h.drops || !m.records.Empty()
	}
}

// add adds the reservation held of the call id.
func (p *Plan) add(now limit.Instant, id *idempotency.Call, r *idempotency.Record, held reserved) {
	s := &p.holding.section
	var hold reservation.Hold
	if held.part.Free {
		hold = reservation.HoldNothing()
	} else if p.by == Window {
		hold = reservation.HoldUnits(p.window.Slot(), held.units)
	} else {
		hold = reservation.HoldTokens(now, held.units)
		if tat, interval := p.bucket.Next(); !s.Holds() {
			s.Start = limit.Instant(limit.SatSub(int64(tat), limit.SatMul(held.units, int64(interval))))
		}
	}
	hold.Hash, hold.Print, hold.End = id.Hash(s.Seed), id.Print, held.until
	hold.Missing, hold.Ready, hold.Variant, hold.Part = r.Missing, r.Ready, held.variant, held.part
	s.Add(&hold)
	if held.link {
		s.AddLink(&reservation.Link{Hash: hold.Hash, Print: hold.Print, Keys: held.keys})
	}
	p.holding.adds = true
}

// charged adapts the reservations to the change of the limiter by the call at now. reserves says that the call is a new
// reservation.
func (h *holding) charged(p *Plan, now limit.Instant, reserves bool) {
	s := &h.section
	switch {
	case h.unused:
		s.Void() // an unused limiter has no units in use, so all reserved units have become free
	case p.by == Window && p.Foreign:
		s.Void()
	case p.by == Window:
		return
	case p.bucket.Mode != tokenbucket.Greedy:
		s.Void()
	case s.Holds():
		h.priced(p, now, reserves)
	}
	if p.by == Bucket {
		s.Short = p.bucket.Short
	}
}

// priced does the work of charged for a bucket of mode Greedy. It is called before and after the
// call.
func (h *holding) priced(p *Plan, now limit.Instant, reserves bool) {
	before, from := tokenbucket.TAT(h.state)
	after, to := p.bucket.Next()
	if from != to {
		h.section.Rescale(now, from, to)
		if debt := before.Sub(now); debt > 0 {
			before = now.Add(time.Duration(limit.MulDivCeil(int64(debt), int64(to), int64(from))))
		}
	}
	if !reserves {
		h.section.Charged(now, before, after)
	}
}
