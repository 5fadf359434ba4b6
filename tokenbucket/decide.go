package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action says what a decision does to the key.
type Action uint8

const (
	// Keep: nothing is written, neither value nor expiry.
	Keep Action = iota
	// Store: value, mode and expiry become those of the [Plan].
	Store
	// Delete: the key goes away; a bucket that is full has nothing to remember.
	Delete
)

// Plan is the outcome of a decision: the answer, and what has to happen to the key.
// Callers own it and may reuse it.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry belong to the state that Store stores. Expiry is its natural
	// one: the instant from which on the key is as if it did not exist.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the key has the usage of another limit: of another mode or rate.
	Foreign bool

	next state
}

// Apply returns the bytes to store under the key: the value that was decided on,
// unless p.Action is [Store]. They share the memory of value, or of dst if value
// has none, as far as its capacity goes.
func (p *Plan) Apply(value, dst []byte) []byte {
	if p.Action != Store {
		return value
	}
	if cap(value) < p.next.mode.size() {
		return p.next.append(dst[:0])
	}
	return p.next.append(value[:0])
}

// Decide judges c at now against the value stored in mode, which [Check] must have
// accepted, and fills p. Without a key the mode is None and the value is ignored,
// as is the expiry always: what is stored says all. It reads value and keeps no
// reference to it.
//
// A capacity of 0 refuses every quantity above 0, however it is charged, and writes nothing.
//
// The error is [limit.ErrOverflow] if the call, or the conversion it asks for,
// would make a debt of more than 2^62 ns or one that reaches past the last instant;
// then nothing is to be written and p says so.
func Decide(mode Mode, value []byte, _ limit.Instant, now limit.Instant, c *Call, p *Plan) error {
	*p = Plan{}
	if c.Capacity == 0 {
		closed(mode, value, now, c, p)
		return nil
	}
	var b bucket
	if err := b.open(mode, value, now, c); err != nil {
		return err
	}
	p.Foreign = b.exists && (b.foreign || mode != Warmup && b.was.interval != b.is.interval)
	switch {
	case c.Quantity == 0:
		b.status(p)
		return nil
	case c.Quantity < 0:
		b.refund(p)
		return nil
	case c.Charge == Force && !c.Denied:
		return b.force(p)
	}
	return b.acquire(p)
}

// closed decides a call with a capacity of 0, which has no bucket of its own: what is stored
// stays in its mode and at its rate until it has run off, and a refund gives some of it back.
func closed(mode Mode, value []byte, now limit.Instant, c *Call, p *Plan) {
	b := bucket{now: now, call: c, exists: mode != None}
	if b.exists {
		b.is = decode(mode, value)
		b.is.settle(now)
		if c.Quantity < 0 && !c.looks() {
			interval := b.is.interval
			if mode == Warmup {
				interval = c.Interval
			}
			b.is.give(now, limit.SatSub(0, c.Quantity), interval)
			b.store(p, &b.is)
		}
		b.answer(p, &b.is)
	}
	p.Decision.Limit, p.Decision.Remaining, p.Decision.RetryAfter = 0, 0, limit.NoRetry
	switch {
	case c.Quantity > 0 && c.Charge == Partial:
		p.Decision.Refused = c.Quantity
	case c.Quantity > 0:
		p.Decision.Refused = 1
	case c.Quantity == 0 && b.exists:
		if wait := b.is.wait(now, 0, 0); wait > 0 {
			p.Decision.Refused, p.Decision.RetryAfter = 1, wait
		}
	}
}

// Cancel gives back what c took earlier, for a caller that stopped waiting for it,
// and fills p. Unlike a call with a negative quantity it takes the bucket as it is
// stored now: it converts no mode and no rate that somebody else has set since. The
// instants that other callers were promised are theirs and do not move; what comes
// back serves those who come later.
func Cancel(mode Mode, value []byte, now limit.Instant, c *Call, p *Plan) {
	*p = Plan{}
	if mode == None || c.Quantity <= 0 {
		return
	}
	b := bucket{now: now, call: c, exists: true, is: decode(mode, value)}
	b.is.settle(now)
	interval := b.is.interval
	if mode == Warmup {
		interval = c.Interval
	}
	b.is.give(now, c.Quantity, interval)
	b.store(p, &b.is)
	b.answer(p, &b.is)
}

// bucket is what one call finds under its key.
type bucket struct {
	now    limit.Instant
	call   *Call
	exists bool
	// was is the stored bucket brought up to now; is, what the call makes of it: in
	// its own mode and at its own rate.
	was, is state
	// foreign is set when was is a bucket of another kind than is. Whoever takes
	// nothing from it is then answered by was.
	foreign bool
	// rewrites is set when even a refusal stores is.
	rewrites bool
}

func (b *bucket) open(mode Mode, value []byte, now limit.Instant, c *Call) (err error) {
	b.now, b.call = now, c
	if mode == None {
		b.is, err = fresh(now, c)
		b.rewrites = c.startsShort() && c.Quantity > 0
		return err
	}
	b.exists = true
	b.was = decode(mode, value)
	b.was.settle(now)
	b.is = b.was
	switch {
	case mode.continuous() && c.Mode.continuous():
		b.rewrites, err = b.is.reprice(now, c)
	case mode != c.Mode || mode == Interval && !b.was.samePair(c):
		b.foreign, b.rewrites = true, mode == Warmup
		b.is, err = b.was.converted(now, c)
	case mode == Leaky:
		b.is.interval = c.Interval
	case mode == Warmup:
		b.is.rescale(c)
	}
	return err
}

// converted returns the bucket in the call's mode with the same balance in whole
// tokens and a phase that starts now. A Warmup bucket starts cold, and busy until
// the balance is no longer negative.
func (s *state) converted(now limit.Instant, c *Call) (state, error) {
	used := limit.SatSub(c.Capacity, s.balance(now, c.Capacity))
	to, err := emptied(now, c, used)
	if err != nil || c.Mode != Warmup {
		return to, err
	}
	to.stored = to.most
	return to, to.push(now, s.wait(now, c.Capacity, 0))
}

// shown is the bucket that answers whoever takes nothing.
func (b *bucket) shown() *state {
	if b.foreign {
		return &b.was
	}
	return &b.is
}

// status answers a quantity of 0, which is refused while more is in use than the
// capacity.
func (b *bucket) status(p *Plan) {
	b.answer(p, b.shown())
	if wait := b.shown().wait(b.now, b.call.Capacity, 0); wait > 0 {
		p.Decision.Refused, p.Decision.RetryAfter = 1, wait
	}
}

// refund gives -Quantity tokens back; a missing key stays missing. Looking at one
// shows an Interval bucket in the call's batches already, unlike any other look.
func (b *bucket) refund(p *Plan) {
	if b.exists && !b.call.looks() {
		b.is.give(b.now, limit.SatSub(0, b.call.Quantity), b.call.Interval)
		b.store(p, &b.is)
		b.answer(p, &b.is)
		return
	}
	if b.was.mode == b.is.mode {
		b.foreign = false
	}
	b.answer(p, b.shown())
	b.refused(p)
}

// force takes all of the quantity. It answers how long to wait if that overdraws
// the bucket; in the modes that always let callers wait, how long this one has to.
func (b *bucket) force(p *Plan) error {
	c, wait := b.call, until(b.is.at, b.now)
	if err := b.is.take(b.now, c.Quantity, c); err != nil {
		return err
	}
	b.store(p, &b.is)
	b.answer(p, &b.is)
	if c.Mode != Leaky && c.Mode != Warmup {
		wait = b.is.wait(b.now, c.Capacity, 0)
		if wait > 0 && c.Mode != Debt {
			wait = b.is.wait(b.now, c.Capacity, 1)
		}
	}
	p.Decision.RetryAfter = orNoRetry(wait)
	return nil
}

// acquire decides Whole, Peek and Partial of a positive quantity.
func (b *bucket) acquire(p *Plan) error {
	c := b.call
	granted, after := b.is.judge(b.now, c)
	if granted == 0 {
		if b.foreign && b.rewrites && !c.looks() {
			b.foreign = false
		} else if b.foreign && !b.rewrites && c.Mode != Warmup && after != limit.NoRetry {
			after = b.was.wait(b.now, c.Capacity, c.need())
		}
		b.answer(p, b.shown())
		b.refused(p)
		p.Decision.Refused, p.Decision.RetryAfter = 1, after
		if c.Charge == Partial {
			p.Decision.Refused = c.Quantity
		}
		return nil
	}
	taken := b.is
	if err := taken.take(b.now, granted, c); err != nil {
		return err
	}
	if c.looks() {
		b.answer(p, b.shown())
		b.refused(p)
	} else {
		b.store(p, &taken)
		b.answer(p, &taken)
	}
	p.Decision.Refused, p.Decision.RetryAfter = c.Quantity-granted, after
	return nil
}

// judge returns how many units a call of a positive quantity gets and what it
// answers as the time to wait: of a grant until it may be used, of a refusal until
// the same call would pass.
func (s *state) judge(now limit.Instant, c *Call) (granted int64, after time.Duration) {
	switch {
	case c.Charge != Partial && c.Quantity > c.Capacity && s.mode != Debt:
		return 0, limit.NoRetry
	case s.mode == Leaky:
		return s.queue(now, c)
	case s.mode == Warmup:
		return reserve(until(s.at, now), c)
	case s.mode == Debt:
		return reserve(s.wait(now, c.Capacity, 0), c)
	case c.Charge == Partial:
		if granted = min(c.Quantity, s.balance(now, c.Capacity)); granted > 0 {
			return granted, limit.NoRetry
		}
		return 0, s.wait(now, c.Capacity, 1)
	}
	return reserve(s.wait(now, c.Capacity, c.Quantity), c)
}

// reserve grants the quantity if the caller is ready to wait for it.
func reserve(wait time.Duration, c *Call) (granted int64, after time.Duration) {
	if wait > c.MaxWait {
		return 0, wait - c.MaxWait
	}
	return c.Quantity, orNoRetry(wait)
}

// answer fills in the fields that describe a bucket.
func (b *bucket) answer(p *Plan, s *state) {
	p.Decision = limit.Decision{
		Limit:      b.call.Capacity,
		Remaining:  s.remaining(b.now, b.call.Capacity),
		RetryAfter: limit.NoRetry,
		ResetAfter: s.reset(b.now),
	}
}

// refused plans what a call stores that takes nothing.
func (b *bucket) refused(p *Plan) {
	if b.rewrites && b.call.Charge != Peek {
		b.store(p, &b.is)
	}
}

// store plans to store s, or to delete the key if there is nothing to remember. A
// key that starts below its capacity lives on for a while when it is full.
func (b *bucket) store(p *Plan, s *state) {
	short := b.call.startsShort()
	if s.full(b.now) && !short {
		if b.exists {
			p.Action = Delete
		}
		return
	}
	p.Action, p.Mode, p.next = Store, s.mode, *s
	p.Expiry = s.idle(b.now)
	if short {
		p.Expiry = p.Expiry.Add(idleLife)
	}
}
