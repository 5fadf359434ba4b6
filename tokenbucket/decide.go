package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is what a plan does to its key.
type Action uint8

const (
	// Keep: nothing is written, neither value nor expiry.
	Keep Action = iota
	// Store: value, mode and expiry become those of the [Plan].
	Store
	// Delete: the key is removed, since a full bucket need not be stored.
	Delete
)

// Plan is the result of a decision: the answer, and the change of the key. It belongs to the caller
// and may be reused.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry are to be stored with the value if Action is Store. Expiry is the instant
	// from which on the key is as if it did not exist.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the key has the usage of a limit with another mode or rate.
	Foreign bool

	next state
}

// Apply returns the bytes to store under the key, or value unchanged unless p.Action is [Store].
// They use the memory of value, or of dst if value has none, as far as its capacity allows.
func (p *Plan) Apply(value, dst []byte) []byte {
	if p.Action != Store {
		return value
	}
	if cap(value) < p.next.mode.size() {
		return p.next.append(dst[:0])
	}
	return p.next.append(value[:0])
}

// Decide decides c at now on the value stored in mode, which [Check] must have accepted, and fills
// p. For an absent key the mode is None and value is ignored. The expiry is always ignored, since
// value has the whole state. Decide reads value and keeps no reference to it.
//
// A capacity of 0 refuses every quantity above 0, however it is charged, and writes nothing.
//
// The error is [limit.ErrOverflow] if the call, or the conversion for it, would make a debt of more
// than 2^62 ns or one that ends after the last instant; then p.Action is Keep.
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

// closed decides a call with a capacity of 0, which has no bucket of its own: the stored state
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

// Cancel gives back what c has taken earlier, for a caller that has stopped waiting for it, and
// fills p. Unlike a call with a negative quantity it uses the bucket as it is stored now, without
// conversion to c's mode and rate, which another call may have changed. The instants that were
// promised to other callers do not move; the returned tokens serve later calls.
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

// bucket has the state of a key for one call.
type bucket struct {
	now    limit.Instant
	call   *Call
	exists bool
	// was is the stored bucket, advanced to now. is is the bucket for the call, in the call's mode
	// and at its rate.
	was, is state
	// foreign says that was is a bucket of another kind than is. Then was answers calls that take
	// nothing.
	foreign bool
	// rewrites says that even a refusal stores is.
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

// converted returns the bucket in the call's mode with the same balance in whole tokens and a phase
// that starts now. A Warmup bucket starts cold, and is busy until the balance is no longer
// negative.
func (s *state) converted(now limit.Instant, c *Call) (state, error) {
	used := limit.SatSub(c.Capacity, s.balance(now, c.Capacity))
	to, err := emptied(now, c, used)
	if err != nil || c.Mode != Warmup {
		return to, err
	}
	to.stored = to.most
	return to, to.push(now, s.wait(now, c.Capacity, 0))
}

// shown returns the bucket that answers calls which take nothing.
func (b *bucket) shown() *state {
	if b.foreign {
		return &b.was
	}
	return &b.is
}

// status answers a quantity of 0, which is refused while more than the capacity is in use.
func (b *bucket) status(p *Plan) {
	b.answer(p, b.shown())
	if wait := b.shown().wait(b.now, b.call.Capacity, 0); wait > 0 {
		p.Decision.Refused, p.Decision.RetryAfter = 1, wait
	}
}

// refund gives -Quantity tokens back; an absent key stays absent. Unlike other calls that change
// nothing, a peek at a refund shows an Interval bucket in the call's batches already.
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

// force takes the whole quantity. The answer has the time to wait if that overdraws the bucket; in
// the modes in which calls always wait, the time for which this one has to.
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

// acquire decides a positive quantity with Whole, Peek or Partial.
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

// judge returns the number of units that a call of a positive quantity gets, and the wait in its
// answer: for a grant until it may be used, for a refusal until the same call would pass.
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

// store plans to store s, or to delete the key if it need not be stored. A key that starts below
// its capacity lives for a while after it is full.
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
