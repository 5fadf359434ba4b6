package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is the kind of change that a plan makes to its key.
type Action uint8

// These are the values of [Action].
const (
	// Keep changes neither the value nor the expiry of the key.
	Keep Action = iota
	// Store stores the result of [Plan.Apply], with the mode and the expiry of the plan.
	Store
	// Delete removes the key, since a full bucket need not be stored.
	Delete
)

// Plan is the result of [Decide] or [Cancel]: the answer, and the change of the key. It belongs to
// the caller and may be reused.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry have to be stored with the value if Action is Store. From the instant Expiry
	// on, the bucket is as if it had never been used.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the stored tokens were used under a limit with another mode or rate. Greedy
	// and Debt count as the same mode here, and all rates of Warmup as the same rate.
	Foreign bool
	// Short says that new buckets of the call start with fewer tokens than the capacity. It is set if the
	// call changes the bucket.
	Short bool

	next state
}

// Apply returns the bytes to store under the key, or value unchanged unless p.Action is [Store]. It
// writes them into the memory of value if that is large enough, else into that of dst. It allocates
// memory only if both are too small.
func (p *Plan) Apply(value, dst []byte) []byte {
	if p.Action != Store {
		return value
	}
	if cap(value) < p.next.mode.size() {
		return p.next.append(dst[:0])
	}
	return p.next.append(value[:0])
}

// Decide decides c at now and writes the result to p. value is the stored value of the key, which
// [Check] must have accepted, and mode is its mode. For an absent key mode is [None] and value is
// ignored. Decide ignores the expiry of the key, since value has the whole state. It reads value
// and keeps no reference to it.
//
// A capacity of 0 refuses every quantity above 0, whatever c.Charge is, and the plan stores
// nothing.
//
// The error is [limit.ErrOverflow] if the call, or the conversion of the bucket for it, would make
// a debt of more than 2^62 ns or one that ends after the last instant. In that case p.Action is
// Keep.
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

// closed decides a call whose capacity is 0. Such a call has no bucket of its own. The stored state
// stays in its mode and at its rate until it is unused again, and a call with a negative quantity
// gives tokens back to it.
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

// Cancel gives back the tokens that c has taken earlier, for a caller that has stopped waiting for
// them, and writes the result to p. Unlike a call with a negative quantity, Cancel uses the bucket
// as it is stored now, without conversion to the mode and rate of c, since another call may have
// changed these. The instants that were promised to other callers do not move; the returned tokens
// serve later calls. If mode is [None] or the quantity is not positive, p becomes the zero Plan.
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
	// was has the stored bucket, advanced to now, and is has the bucket in the mode and at the rate
	// of the call.
	was, is state
	// foreign says that the call needs another kind of bucket than the stored one. In that case the
	// bucket in was answers calls that take nothing.
	foreign bool
	// rewrites says that even a refused call has to store the bucket for the call.
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

// converted returns a bucket in the mode of c with the same balance in whole tokens. Its first
// period starts at now. The error is [limit.ErrOverflow] if the debt cannot be stored. A Warmup
// bucket starts cold, and lets calls wait until the balance would no longer be negative.
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

// status answers a call with a quantity of 0. The call is refused while more tokens than the
// capacity are in use.
func (b *bucket) status(p *Plan) {
	b.answer(p, b.shown())
	if wait := b.shown().wait(b.now, b.call.Capacity, 0); wait > 0 {
		p.Decision.Refused, p.Decision.RetryAfter = 1, wait
	}
}

// refund decides a call with a negative quantity, which gives tokens back. An absent key stays
// absent. A call that is a peek or Denied gives nothing back. If the stored bucket has another
// mode, the answer of such a call is from the stored bucket, otherwise from the bucket for the
// call. Greedy and Debt count as the same mode here.
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

// force takes the whole quantity. In Leaky and Warmup mode RetryAfter of the answer is the time for
// which this call has to wait. In other modes it is the time until a call for one token would pass,
// if the balance is now negative. Otherwise RetryAfter is [limit.NoRetry].
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

// acquire decides a call with a positive quantity whose Charge is Whole, Peek or Partial, or that
// is Denied.
func (b *bucket) acquire(p *Plan) error {
	c := b.call
	granted, after := b.is.judge(b.now, c)
	if granted == 0 && c.Penalize && !c.looks() && b.penalize(p) {
		return nil
	}
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

// penalize refuses the call and takes the tokens that there are and one more, but not more than the call wants. It
// returns false, and does nothing, if there is nothing to take, or the bucket cannot owe so much.
func (b *bucket) penalize(p *Plan) bool {
	c, after := b.call, b.is
	n := min(c.Quantity, limit.SatAdd(b.is.balance(b.now, c.Capacity), 1))
	if n <= 0 || after.take(b.now, n, c) != nil {
		return false
	}
	b.store(p, &after)
	b.answer(p, &after)
	p.Decision.Refused, p.Decision.RetryAfter = 1, limit.NoRetry
	if c.Quantity <= c.Capacity {
		p.Decision.RetryAfter = after.wait(b.now, c.Capacity, c.Quantity)
	}
	return true
}

// judge returns granted, the number of tokens that a call with a positive quantity gets, and after,
// the RetryAfter of its answer. For a grant, after is the time until the tokens may be used, or
// [limit.NoRetry] if they may be used at once. For a refusal, after is the time until the same call
// would pass, or [limit.NoRetry] if it can never pass.
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

// reserve grants the whole quantity if wait is at most c.MaxWait. after is then wait, or
// [limit.NoRetry] if wait is 0. Otherwise granted is 0, and after is the time until wait has
// decreased to c.MaxWait.
func reserve(wait time.Duration, c *Call) (granted int64, after time.Duration) {
	if wait > c.MaxWait {
		return 0, wait - c.MaxWait
	}
	return c.Quantity, orNoRetry(wait)
}

// answer sets the fields of the decision that describe the bucket s.
func (b *bucket) answer(p *Plan, s *state) {
	p.Decision = limit.Decision{
		Limit:      b.call.Capacity,
		Remaining:  s.remaining(b.now, b.call.Capacity),
		RetryAfter: limit.NoRetry,
		ResetAfter: s.reset(b.now),
	}
}

// refused plans the change of the key by a call that takes nothing. The plan stores the bucket if
// b.rewrites is set and the call is not a peek; otherwise it changes nothing.
func (b *bucket) refused(p *Plan) {
	if b.rewrites && b.call.Charge != Peek {
		b.store(p, &b.is)
	}
}

// store plans to store s, or to delete the key if s need not be stored. If new keys of the call
// start with fewer tokens than the capacity, the key stays for IdleLife after its bucket is full.
func (b *bucket) store(p *Plan, s *state) {
	short := b.call.startsShort()
	p.next, p.Mode, p.Short = *s, s.mode, short
	if s.full(b.now) && !short {
		if b.exists {
			p.Action = Delete
		}
		return
	}
	p.Action = Store
	p.Expiry = s.idle(b.now)
	if short {
		p.Expiry = p.Expiry.Add(IdleLife)
	}
}
