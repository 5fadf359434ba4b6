package decide

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// decideHolding does what decide does, for an entry that has reservations, or a window or bucket
// that is to be reserved.
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
	if s.as == noting {
		return s.note(d, e, &state, c)
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
	if reserves && h.section.Full(s.ask.Reserve.Max) {
		s.full(d, c)
		return nil
	}
	id, takes := s.id, c.takes()
	if (!s.charges() || !d.Allowed()) && !s.counted || !takes {
		id = nil
	}
	r := s.record(d, c)
	if h.before == nil && (id == nil || !reserves) {
		s.remember(&state, h.records, s.now, id, r)
		return nil
	}
	var held reserved
	if id != nil && reserves {
		held = s.held(c, s.granted(c))
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

// reservable reports whether the limiter of the clause can give back exactly the units that the
// clause charges.
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

// held returns the reserved units of the clause c, of which the call takes units.
func (s *Rounds) held(c *Clause, units int64) reserved {
	r := &s.ask.Reserve
	held := reserved{units: units, until: s.now.Add(r.TTL), variant: c.Window != nil && c.Window.First}
	held.part = reservation.Part{Calls: c.Fixed, Linked: r.Linked, Free: r.Free}
	for i := range s.ask.Clauses {
		switch other := &s.ask.Clauses[i]; {
		case other.Unlimited:
		case other.Lease != nil:
			if !bytes.Equal(other.Lease.Member, s.id.Token) {
				held.part.Member = other.Lease.Member
			}
		case other == c:
			held.part.Index = held.part.Of
			held.part.Of++
		default:
			held.part.Of++
		}
	}
	if r.Link && held.part.Index == 0 {
		held.link, held.keys = true, r.Keys
	}
	if r.Of > 0 {
		held.part.Index, held.part.Of = c.Index, r.Of
	}
	return held
}

// note decides the clause c of a call that takes nothing, and records a reservation without units. e is the entry of
// the key, and state the state of its limiter, as the call sees it. The limiter does not change. A key that does not
// exist gets an unused limiter.
func (s *Rounds) note(d *limit.Decision, e, state *entry.Entry, c *Clause) error {
	h := &s.holding
	s.remembers = false
	s.ask.Full = s.ask.Full || h.section.Full(s.ask.Reserve.Max)
	if err := s.decideClause(d, state, s.now, c, peeking); err != nil || s.ask.Full {
		return err
	}
	if e.Kind == entry.None {
		if ok, err := s.unused(c); !ok {
			return err
		}
	}
	s.Action, s.Frees, s.Foreign, h.changed = Keep, false, false, true
	s.hold(e, s.now, false, s.id, &idempotency.Record{Ready: limit.MinInstant}, s.held(c, 0))
	return nil
}

// unused sets the state in the plan to the state of a new limiter of the clause c without charges. ok is false if the
// limiter has no such state.
func (s *Rounds) unused(c *Clause) (ok bool, err error) {
	h := &s.holding
	var (
		d    limit.Decision
		none entry.Entry
	)
	if c.Window != nil {
		call := *c.Window
		call.Limit, call.Quantity, call.Charge = max(call.Limit, 1), 1, slidingwindow.Force
		err = s.decideWindow(&d, &none, s.now, &call)
	} else {
		call := *c.Bucket
		call.Capacity, call.Quantity, call.Charge = max(call.Capacity, 1), 1, tokenbucket.Force
		err = s.decideBucket(&d, &none, s.now, &call)
	}
	if err != nil || s.Action != Store {
		s.Action = Keep
		return false, err
	}
	h.kind, h.work = s.Kind, s.apply(nil, h.work[:0])
	if c.Window != nil {
		h.work = slidingwindow.Clear(h.kind.WindowMode(), h.work)
	} else {
		tat, interval := tokenbucket.TAT(h.work)
		tokenbucket.PutTAT(h.work, tat.Add(-interval))
		h.section.Short = s.bucket.Short
	}
	h.state, h.copied = h.work, true
	return true, nil
}

// Settlements settles a reservation of several limits at one instant. One goroutine reuses it for one ask
// after another, of family [SettleSeveral], or [Settle] if the key has a link to other keys. The caller
// calls
//
//	s.Start(a)
//	for more := true; more; more = s.More() {
//		// lock the keys s.Key(0) to s.Key(s.Len()-1)
//		s.Begin(now)
//		// Find with each key and its entry
//	}
//
// then, with each key and its entry, Look, and after that Check, and then Settle, and makes the change of the plan
// after each Settle. If Check or Settle returns an error, the keys must not change. So the caller first calls Settle
// for all keys without making the changes, and then again. All methods may use the same plan, because no method needs
// it later.
type Settlements struct {
	ask    *Ask
	now    limit.Instant
	part   Ask      // the ask that settles one key
	keys   [][]byte // the keys of the arguments, followed by the keys of the link
	named  int      // number of the keys of the arguments
	names  []byte   // the bytes of the keys of the link
	linked int      // one more than the index of the key with the link; 0 if there is no link
	print  uint32   // the fingerprint of the call that has made the link
	more   bool     // whether one more round is needed
	member []byte   // the member that holds the places of the reservation
	of     uint8    // number of windows and buckets of the reservation; 0 if none is known
	live   bool     // whether a window or bucket has a live part
	units  bool     // whether there is a window or a bucket
	// largest is the index of the first key with the largest estimate among the keys that were settled. The keys may be
	// settled in any order.
	largest int
}

// Start begins to settle a.
func (s *Settlements) Start(a *Ask) {
	*s = Settlements{ask: a, keys: s.keys[:0], names: s.names[:0], member: s.member}
	if a.Family == Settle {
		s.keys = append(s.keys, a.Key)
	} else {
		for i := range a.Clauses {
			s.keys = append(s.keys, a.Clauses[i].Key)
		}
	}
	s.named = len(s.keys)
}

// Len returns the number of keys that may have a part of the reservation.
func (s *Settlements) Len() int { return len(s.keys) }

// Key returns the key with the index i of those that Len counts.
func (s *Settlements) Key(i int) []byte { return s.keys[i] }

// Further returns the keys of the link, which come after the keys of the arguments. They are valid until the next
// [Settlements.Find].
func (s *Settlements) Further() [][]byte { return s.keys[s.named:] }

// Linked reports whether one of the keys of the arguments has a link.
func (s *Settlements) Linked() bool { return s.linked > 0 }

// Begin begins a round at now. All keys must be locked.
func (s *Settlements) Begin(now limit.Instant) {
	a := s.ask
	s.now, s.linked, s.more, s.of, s.live, s.units = now, 0, false, 0, false, false
	s.member = append(s.member[:0], a.ID.Token...)
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

// Find looks for a link at the i-th key, which has the entry e. It uses p as memory. If several keys have a link, that
// of the first key counts.
func (s *Settlements) Find(p *Plan, i int, e *entry.Entry) {
	if i >= s.named || s.linked > 0 && s.linked <= i || !hasReservations(e) {
		return
	}
	h := &p.holding
	h.begin(e, s.now, s.ask.ID.Seed, SettleSeveral)
	if at, print, found := h.link(s.now, &s.ask.ID, s.ask.ID.Hash(h.section.Seed)); found {
		s.linked, s.print = i+1, print
		s.follow(&h.section, at)
	}
}

// Look records the part of the reservation that e, the entry of a key, has before the settlement. It uses p as memory.
func (s *Settlements) Look(p *Plan, e *entry.Entry) {
	k := e.Kind.Plain()
	s.units = s.units || k.IsWindow() || k.IsBucket()
	if !hasReservations(e) {
		return
	}
	h, a := &p.holding, s.one()
	h.begin(e, s.now, a.ID.Seed, SettleSeveral)
	hash := a.ID.Hash(h.section.Seed)
	if at, live := h.section.Find(hash); live {
		hold := h.section.At(at)
		if part := hold.Part; a.settles(part, hold.Print) {
			s.of, s.live = max(s.of, part.Of), s.live || !part.Free
			if part.Member != nil {
				s.member = append(s.member[:0], part.Member...)
			}
		}
		return
	}
	if r, found := h.remembered(s.now, &a.ID, hash); found && r.State == idempotency.Lapsed && a.settles(reservation.PartOf(&r), r.Print) {
		s.of = max(s.of, reservation.PartOf(&r).Of)
	}
}

// one returns the ask that settles the part of one window or bucket.
func (s *Settlements) one() *Ask {
	a := &s.part
	a.Family, a.ID, a.Settlement, a.Window.LogMaxEntries = SettleSeveral, s.ask.ID, s.ask.Settlement, s.ask.Window.LogMaxEntries
	a.Linked, a.ID.Print = s.linked > 0, s.print
	return a
}

// Check returns [reservation.ErrNumbers] if the call has another number of actual quantities than the
// reservation has windows and buckets.
func (s *Settlements) Check() error {
	if n := len(s.ask.Settlement.Actuals); n > 0 && s.of > 0 && n != int(s.of) {
		return reservation.ErrNumbers
	}
	return nil
}

// follow reads the keys of the link at a position of the section. The next round is about these keys, after the keys of
// the arguments.
func (s *Settlements) follow(section *reservation.Section, at int) {
	before := s.keys[s.named:]
	linked := slices.DeleteFunc(section.Keys(at, nil), func(key []byte) bool {
		return slices.ContainsFunc(s.keys[:s.named], func(named []byte) bool { return bytes.Equal(named, key) })
	})
	if s.more = !slices.EqualFunc(before, linked, bytes.Equal); !s.more {
		return
	}
	s.names, s.keys = s.names[:0], s.keys[:s.named]
	for _, key := range linked {
		from := len(s.names)
		s.names = append(s.names, key...)
		s.keys = append(s.keys, s.names[from:len(s.names):len(s.names)])
	}
}

// More reports whether another round is needed, because the last round has found other keys than those with which it
// began: a link was added, changed or removed.
func (s *Settlements) More() bool {
	if s.linked == 0 && len(s.keys) > s.named {
		s.keys, s.more = s.keys[:s.named], true
	}
	return s.more
}

// Forget drops the references to the ask and to its bytes.
func (s *Settlements) Forget() {
	if clear(s.keys); cap(s.names) > maxSpare {
		s.names = nil
	}
	s.ask, s.part = nil, Ask{}
}

// Settle settles the part of the reservation at the i-th key, which has the entry e, and fills in p. The outcome of the
// ask becomes that of its most important part. The error is [limit.ErrWrongType] if e is no limiter, or that of a
// charge beyond the reserved units.
func (s *Settlements) Settle(p *Plan, i int, e *entry.Entry) error {
	p.Action = Keep
	if e.Kind.Plain().IsLease() {
		return s.settleLease(p, e)
	}
	if i < s.named && e.Kind != entry.None && !e.Kind.IsLimiter() {
		return limit.ErrWrongType
	}
	if !hasReservations(e) {
		return nil // the key has no part of the reservation: it may have been overwritten
	}
	a := s.one()
	if err := p.oneHolding(e, s.now, a); err != nil {
		return err
	}
	s.ask.Settled = max(s.ask.Settled, a.Settled)
	s.ask.Lapsed += a.Lapsed
	most := s.ask.Estimated
	if i < s.named && a.Estimated > 0 && (a.Estimated > most || a.Estimated == most && i < s.largest) {
		s.ask.Estimated, s.ask.Used, s.largest = a.Estimated, a.Used, i
	}
	return nil
}

// settleLease releases the places of the reservation in the lease set e, or renews them. If the
// reservation is not live, the places of its member belong to another call. A reservation that has
// only places is stored only as its leases.
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
