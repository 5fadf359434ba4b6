package decide

import (
	"errors"
	"math"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// ErrReused is the error of a call whose token was used by a call with other arguments.
var ErrReused = errors.New("ID was used with other arguments")

// memory is the part of a plan about an entry that remembers calls before or after the change.
type memory struct {
	records idempotency.Plan
	// before says that the entry remembers calls before the change, and after says that it does so
	// after the change.
	before, after bool
	// state is Store if the state of the limiter changes, and otherwise Keep.
	state Action
	// copied and spare are buffers for states that cannot be changed in place.
	copied, spare []byte
}

// maxSpare is the maximum capacity in bytes of the memory for states that a plan keeps.
const maxSpare = 256 << 10

// oneRemembering decides on an ask with a token, or on any ask if the entry remembers calls.
func (p *Plan) oneRemembering(e *entry.Entry, now limit.Instant, a *Ask) error {
	a.Repeated, a.Forgotten = false, 0
	if a.Family == Admin {
		return p.administer(e, now, &a.Admin, &a.Result)
	}
	if p.holds = false; a.Family == Settle || a.Reserve.TTL > 0 || hasReservations(e) {
		return p.oneHolding(e, now, a)
	}
	state, records := entry.Plain(e)
	id := &a.ID
	if id.Token == nil || a.OnlyLooks() {
		id = nil
	}
	if id != nil && records != nil {
		if r, found := idempotency.Find(records, now, id); found {
			return p.repeatOne(&state, now, a, &r)
		}
	}
	if err := p.one(&state, now, a); err != nil {
		return err
	}
	r := idempotency.Record{Ready: readyAt(now, &a.Decision, a.Family == Bucket && a.Bucket.Promises())}
	granted := a.Decision.Refused == 0
	if p.counted {
		r, granted = deniedRecord, true
	} else if asked := a.shared(); asked > 0 {
		r.Missing, granted = a.Decision.Refused, a.Decision.Refused < asked
	}
	if !granted {
		id = nil
	}
	if p.remember(&state, records, now, id, r); id != nil {
		a.forgot(&p.memory.records)
	}
	return nil
}

// hasReservations reports whether e has reservations, or remembers some that have ended.
func hasReservations(e *entry.Entry) bool { return e.Kind.Remembers() && reservation.Marked(e.Value) }

// shared returns the quantity of an ask about one limiter that may be granted a part of it; 0 for
// other asks.
func (a *Ask) shared() int64 {
	switch {
	case a.Family == Window && a.Window.Charge == slidingwindow.Partial:
		return max(0, a.Window.Quantity)
	case a.Family == Bucket && a.Bucket.Charge == tokenbucket.Partial:
		return max(0, a.Bucket.Quantity)
	}
	return 0
}

// forgot adds to the answer the calls that a key has forgotten because it remembered too many.
func (a *Ask) forgot(p *idempotency.Plan) {
	if p.Forgotten == 0 {
		return
	}
	if a.Forgotten == 0 || p.Shortest < a.Shortest {
		a.Shortest = p.Shortest
	}
	a.Forgotten += p.Forgotten
}

// Repeats reports whether a, which was decided, is the repetition of a call that was charged before, or
// settles a reservation that was settled before.
func (a *Ask) Repeats() bool {
	if a.Family == Settle || a.Family == SettleSeveral {
		return a.Settled == reservation.Before
	}
	return a.ID.Token != nil && a.Repeated
}

// readyAt returns the instant at which the caller of a granted call may use its units, in the form
// of the record of the call. promises says that RetryAfter of d is the time until that instant.
func readyAt(now limit.Instant, d *limit.Decision, promises bool) limit.Instant {
	if !promises || d.RetryAfter <= 0 {
		return limit.MinInstant
	}
	return now.Add(d.RetryAfter)
}

// repeatOne answers a, the repetition of the call with the record r, from e, the state of the
// limiter. It plans no change. The error is [ErrReused] or an error of the family.
func (p *Plan) repeatOne(e *entry.Entry, now limit.Instant, a *Ask, r *idempotency.Record) (err error) {
	p.Action, p.remembers = Keep, false
	if r.Print != a.ID.Print {
		return ErrReused
	}
	a.Repeated = true
	switch a.Family {
	case Window:
		c := a.Window
		c.Quantity, c.Charge, c.Penalize = 0, slidingwindow.Peek, false
		err = p.decideWindow(&a.Decision, e, now, &c)
	case Bucket:
		c := a.Bucket
		c.Quantity, c.Charge = 0, tokenbucket.Peek
		err = p.decideBucket(&a.Decision, e, now, &c)
	case Lease:
		c := a.Lease
		c.Peek = true
		err = p.decideLease(&a.Decision, e, now, &c)
	default:
		err = p.decideCell(&a.Decision, e, now, &a.Quota, 0)
	}
	p.Action = Keep
	repeated(&a.Decision, now, r)
	return err
}

// repeated changes d, the answer to a call that takes nothing, into the answer to the repetition of
// the call with the record r.
func repeated(d *limit.Decision, now limit.Instant, r *idempotency.Record) {
	if d.Refused, d.RetryAfter = r.Missing, limit.NoRetry; r.Ready > now {
		d.RetryAfter = r.Ready.Sub(now)
	}
}

// search looks for the token of the call among the calls that e remembers. The error is [ErrReused].
func (s *Rounds) search(e *entry.Entry) error {
	if hasReservations(e) {
		h := &s.holding
		h.begin(e, s.now, s.id.Seed, Several)
		r, found, err := h.find(s.now, s.id)
		if found && err == nil && !s.found {
			s.found, s.again = true, r
		}
		return err
	}
	_, records := entry.Plain(e)
	if records == nil {
		return nil
	}
	r, found := idempotency.Find(records, s.now, s.id)
	switch {
	case !found:
		return nil
	case r.Print != s.id.Print:
		return ErrReused
	case !s.found:
		s.found, s.again = true, r
	}
	return nil
}

// decideRemembering does what decide does, if the entry remembers calls, or the call has a token.
func (s *Rounds) decideRemembering(d *limit.Decision, e *entry.Entry, c *Clause) error {
	reserves := s.reserves()
	if s.holds = false; hasReservations(e) || reserves && c.Lease == nil {
		return s.decideHolding(d, e, c)
	}
	state, records := entry.Plain(e)
	if s.as == repeating {
		r := idempotency.Record{Ready: limit.MinInstant}
		if records != nil {
			if own, found := idempotency.Find(records, s.now, s.id); found {
				r = own
			}
		}
		return s.repeat(d, &state, &r, c)
	}
	if err := s.decideState(d, &state, c); err != nil {
		return err
	}
	id := s.id
	if (!s.charges() || !d.Allowed()) && !s.counted || !c.takes() || reserves { // a lease remembers no reservation
		id = nil
	}
	s.remember(&state, records, s.now, id, s.record(d, c))
	return nil
}

// deniedRecord is the record of a call that was denied and charged. Its field Missing is 1.
var deniedRecord = idempotency.Record{Missing: 1, Ready: limit.MinInstant}

// record returns the record from which a repetition of the call is answered for the clause c. d is
// the decision on the clause.
func (s *Rounds) record(d *limit.Decision, c *Clause) idempotency.Record {
	if s.counted {
		return deniedRecord
	}
	promises := c.Bucket != nil && c.Bucket.Promises()
	return idempotency.Record{Missing: s.ask.Missing, Ready: readyAt(s.now, d, promises)}
}

// charges reports whether the clauses of the round take units.
func (s *Rounds) charges() bool { return s.as == charging || s.as == sharing || s.as == granting }

// repeat answers the clause c of the repetition of a call from e, the state of the limiter. r is the
// record of the call at its key. It plans no change.
func (s *Rounds) repeat(d *limit.Decision, e *entry.Entry, r *idempotency.Record, c *Clause) error {
	s.remembers = false
	if s.ask.Partial {
		r.Missing = 0 // Missing is about the whole call, not about the clause
	}
	if quantity := c.quantity(); quantity != nil {
		defer func(was int64) { *quantity = was }(*quantity)
		*quantity = 0
	}
	err := s.decideClause(d, e, s.now, c, peeking)
	repeated(d, s.now, r)
	return err
}

// remember completes a plan about e, the state of a limiter. records has the records of its key;
// nil if it remembers no call. If id is not nil, the call was charged, and its record r is added.
// If the limiter is unused after the call, the key is removed with all records instead, because no
// charge is left; a refund can then be repeated. Records whose time has passed are removed with the
// next change of the state.
func (p *Plan) remember(e *entry.Entry, records []byte, now limit.Instant, id *idempotency.Call, r idempotency.Record) {
	m := &p.memory
	p.remembers, m.records.Forgotten = false, 0
	switch {
	case p.Action == Remove, p.by == Counter, records == nil && id == nil:
		return
	case p.Action == Keep && (id == nil || !e.Kind.IsLimiter()):
		return
	case p.Action == Keep:
		m.state = Keep
		p.Action, p.Kind, p.Expiry, p.Frees = Store, e.Kind, e.Expiry, false
		if e.Kind == entry.Cell {
			p.tat = entry.CellTAT(e)
		}
	default:
		m.state = Store
	}
	m.records.Decide(records, now, id, r)
	p.remembers, m.before, m.after = true, records != nil, !m.records.Empty()
	if m.after {
		p.Kind = p.Kind.Remembering()
	}
}

// Grows reports whether the change needs more memory for the calls that the entry remembers, or for a
// reservation.
func (p *Plan) Grows() bool {
	switch {
	case !p.remembers:
		return false
	case p.holds:
		return p.holding.adds || p.holding.remembers && p.memory.records.Grows()
	}
	return p.memory.after && p.memory.records.Grows()
}

// applyRemembering does what Apply does, for an entry that remembers calls before or after the
// change.
func (p *Plan) applyRemembering(value, dst []byte) []byte {
	m := &p.memory
	state, records := value, []byte(nil)
	if m.before {
		state, records = idempotency.Split(value)
	}
	if !m.after {
		return p.apply(state, dst)
	}
	if !m.records.InPlace() && len(state) > 0 { // a key that does not exist has no state
		m.copied = append(m.copied[:0], state...)
		state = m.copied
	}
	value = m.records.Apply(value, records, p.nextState(state), dst)
	if cap(m.copied)+cap(m.spare) > maxSpare {
		m.copied, m.spare = nil, nil
	}
	return value
}

// nextState returns the state after the change, for an entry that remembers calls afterwards. The
// result is in the memory of state, the state before the change, or in other memory.
func (p *Plan) nextState(state []byte) []byte {
	m := &p.memory
	switch {
	case p.by == Cell:
		if len(state) == gcra.StateSize {
			gcra.PutState(state, p.tat)
			return state
		}
		m.spare = gcra.AppendState(m.spare[:0], p.tat)
		return m.spare
	case m.state == Keep:
		return state
	}
	next := p.apply(state, m.spare[:0])
	if cap(next) > cap(m.spare) && (len(state) == 0 || &next[:1][0] != &state[0]) {
		m.spare = next[:0]
	}
	return next
}

// maxWholeState is the maximum length in bytes of a state that is recorded as a whole in a delta,
// unless the records are longer.
const maxWholeState = 64

// appendRememberingDelta does what AppendDelta does, for an entry that remembers calls before and
// after the change.
func (p *Plan) appendRememberingDelta(dst, value []byte) (delta []byte, ok bool) {
	m := &p.memory
	if !m.before || !m.after {
		return dst, false
	}
	from := len(dst)
	state, records := idempotency.Split(value)
	delta = m.records.AppendDelta(dst, records)
	if m.state == Keep {
		return delta, true
	}
	if delta, ok = p.appendDelta(delta, state); ok {
		idempotency.MarkState(delta[from:], false)
		return delta, true
	}
	if len(state) > max(maxWholeState, len(records)) {
		return delta[:from], false
	}
	idempotency.MarkState(delta[from:], true)
	m.copied = append(m.copied[:0], state...)
	return append(delta, p.nextState(m.copied)...), true
}

// Fingerprint returns the fingerprint of the arguments of a, for ID.Print. It covers the keys of a
// Several, the limits, the quantities, the options that change what is charged, and the time of a
// reservation.
func (a *Ask) Fingerprint() uint32 {
	var p idempotency.Print
	p.Int(int64(a.Family))
	switch a.Family {
	case Cell:
		printQuota(&p, &a.Quota, a.Quantity)
	case Window:
		printWindow(&p, &a.Window)
	case Bucket:
		printBucket(&p, &a.Bucket)
	case Several:
		for i := range a.Clauses {
			a.Clauses[i].print(&p)
		}
	}
	if a.Keep > 0 {
		p.Int(a.Keep)
	}
	if a.Reserve.TTL > 0 {
		p.Int(int64(a.Reserve.TTL))
	}
	return p.Sum()
}

// print adds the arguments of the clause to p.
func (c *Clause) print(p *idempotency.Print) {
	p.Bytes(c.Key)
	switch {
	case c.Window != nil:
		p.Int(int64(Window))
		printWindow(p, c.Window)
	case c.Bucket != nil:
		p.Int(int64(Bucket))
		printBucket(p, c.Bucket)
	case c.Lease != nil:
		p.Int(int64(Lease))
		p.Int(c.Lease.Limit)
		p.Int(int64(c.Lease.Lease))
		p.Bytes(c.Lease.Member)
	default:
		p.Int(int64(Cell))
		printQuota(p, c.Quota, c.Quantity)
	}
}

func printQuota(p *idempotency.Print, q *gcra.Quota, quantity int64) {
	p.Int(q.Limit())
	p.Int(int64(q.Interval()))
	p.Int(quantity)
}

func printWindow(p *idempotency.Print, c *slidingwindow.Call) {
	p.Int(int64(c.Mode)<<32 | int64(c.Charge)<<24 | flag(c.Even)<<17 | flag(c.First)<<16 | int64(c.Slots))
	p.Int(c.Limit)
	p.Int(int64(c.Window))
	p.Int(c.Quantity)
	p.Int(int64(c.Phase))
	if c.Mode == slidingwindow.Calendar {
		p.Int(int64(c.Calendar.Unit)<<16 | int64(c.Calendar.From))
		p.Bytes([]byte(c.Calendar.Zone.Name()))
	}
}

func printBucket(p *idempotency.Print, c *tokenbucket.Call) {
	p.Int(int64(c.Mode)<<16 | int64(c.Charge)<<8 | flag(c.Waits))
	p.Int(c.Capacity)
	p.Int(c.Count)
	p.Int(int64(c.Period))
	p.Int(c.Quantity)
	p.Int(c.Init)
	p.Int(int64(c.MaxWait))
	if c.Mode == tokenbucket.Warmup {
		p.Int(int64(c.Warmup))
		p.Int(int64(math.Float64bits(c.Cold)))
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
