package tokenbucket_test

import (
	"math/big"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
)

// The models of this file are the algorithms in a readable form: they use integers without
// bounds, one small type for each stored form, and derive every result from the definition. They
// do not compute the waits of refusals and forced charges. The comparison asks them again at that
// instant and just before it.

// answer is the result of a call on a model.
type answer struct {
	overflow         bool
	refused          int64 // units not granted
	never            bool  // waiting does not help
	wait             *big.Int
	remaining, reset *big.Int
	overdrawn        bool // more is in use than the capacity
	unstored         bool // the answer rests on a conversion that was not stored
}

// model is a key under one algorithm.
type model interface {
	// decide makes a call and stores its effect.
	decide(now limit.Instant, c *tokenbucket.Call) answer
	clone() model
}

var (
	zero     = num(0)
	one      = num(1)
	mostDebt = new(big.Int).Lsh(one, 62)
)

func num(n int64) *big.Int { return big.NewInt(n) }

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

func floor(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

func ceil(a, b *big.Int) *big.Int {
	return new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(a), b))
}

func greater(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func lesser(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func within(a, low, high *big.Int) *big.Int { return greater(low, lesser(a, high)) }

// life is when a key expires by itself.
type life struct {
	live   bool
	expiry *big.Int
}

func (l *life) begin(now limit.Instant) bool {
	l.live = l.live && l.expiry.Cmp(num(int64(now))) > 0
	return l.live
}

// keep sets the expiry to idle, or to an hour later if it starts short.
func (l *life) keep(now limit.Instant, idle *big.Int, c *tokenbucket.Call) {
	l.live = idle.Cmp(num(int64(now))) > 0 || c.Init < c.Capacity
	l.expiry = idle
	if c.Init < c.Capacity {
		l.expiry = add(idle, num(int64(time.Hour)))
	}
}

// outcome is the result of a positive quantity on a bucket of whole tokens: how many it grants,
// and when.
type outcome struct {
	granted *big.Int
	never   bool
	wait    *big.Int
}

// greedyModel is Greedy and Debt: debt nanoseconds of filling are missing at the
// instant it was stored.
type greedyModel struct {
	life
	at         limit.Instant
	debt       *big.Int
	interval   *big.Int
	capacity   *big.Int
	overspends bool // stored by DEBT
}

func (m *greedyModel) clone() model { twin := *m; return &twin }

func (m *greedyModel) decide(now limit.Instant, c *tokenbucket.Call) (a answer) {
	interval, capacity := num(int64(c.Interval)), num(c.Capacity)
	overspends := c.Mode == tokenbucket.Debt
	exists := m.begin(now)
	changed := false
	debt := mul(sub(capacity, num(c.Init)), interval)
	if exists {
		debt = greater(zero, sub(m.debt, num(int64(now-m.at))))
		debt, changed = m.repriced(debt, interval, capacity, overspends)
	}
	store := func(d *big.Int) {
		m.at, m.debt, m.interval, m.capacity, m.overspends = now, d, interval, capacity, overspends
		m.keep(now, add(num(int64(now)), d), c)
	}
	describe := func(d *big.Int) {
		a.remaining = within(sub(capacity, ceil(d, interval)), zero, capacity)
		a.reset = d
		a.overdrawn = d.Cmp(mul(capacity, interval)) > 0
	}
	describe(debt)
	a.unstored = changed && (c.Quantity == 0 || c.Charge == tokenbucket.Peek)
	if changed && debt.Cmp(mostDebt) > 0 {
		a.overflow = true
		return a
	}
	switch {
	case c.Quantity == 0:
		if a.overdrawn {
			a.refused = 1
		}
		return a
	case c.Quantity < 0:
		if exists && c.Charge != tokenbucket.Peek {
			store(greater(zero, add(debt, mul(interval, num(c.Quantity)))))
			describe(m.debt)
		}
		return a
	}
	o := m.judge(debt, interval, capacity, c)
	a.wait = o.wait
	after := add(debt, mul(o.granted, interval))
	switch {
	case o.granted.Sign() == 0:
		a.refused, a.never = 1, o.never
		if c.Charge == tokenbucket.Partial {
			a.refused = c.Quantity
		}
		n := penalty(c, sub(capacity, ceil(debt, interval)))
		after := add(debt, mul(n, interval))
		switch {
		case n.Sign() > 0 && after.Cmp(mostDebt) <= 0:
			store(after)
			describe(after)
		case c.Charge != tokenbucket.Peek && (changed || !exists && c.Init < c.Capacity):
			store(debt)
		}
	case after.Cmp(mostDebt) > 0:
		a.overflow = true
	default:
		a.refused = c.Quantity - o.granted.Int64()
		if c.Charge != tokenbucket.Peek {
			store(after)
			describe(after)
		}
	}
	return a
}

// repriced carries the debt to the parameters of a call: tokens stay tokens, but
// under DEBT what is left scales with the capacity and what is owed beyond an empty
// bucket keeps its length.
func (m *greedyModel) repriced(debt, interval, capacity *big.Int, overspends bool) (*big.Int, bool) {
	rate := interval.Cmp(m.interval) != 0
	if m.overspends && overspends {
		if !rate && capacity.Cmp(m.capacity) == 0 {
			return debt, false
		}
		before, after := mul(m.capacity, m.interval), mul(capacity, interval)
		if owed := sub(debt, before); owed.Sign() > 0 {
			return add(after, owed), true
		}
		return ceil(mul(debt, after), before), true
	}
	if !rate {
		return debt, false
	}
	return ceil(mul(debt, interval), m.interval), true
}

func (m *greedyModel) judge(debt, interval, capacity *big.Int, c *tokenbucket.Call) outcome {
	free := sub(capacity, ceil(debt, interval))
	quantity := num(c.Quantity)
	switch {
	case c.Charge == tokenbucket.Force:
		return outcome{granted: quantity}
	case c.Charge == tokenbucket.Partial:
		return outcome{granted: greater(zero, lesser(quantity, free)), wait: zero}
	case c.Mode == tokenbucket.Debt:
		quantity = zero
	case quantity.Cmp(capacity) > 0:
		return outcome{granted: zero, never: true}
	}
	wait := greater(zero, sub(debt, mul(sub(capacity, quantity), interval)))
	if wait.Cmp(num(int64(c.MaxWait))) > 0 {
		return outcome{granted: zero}
	}
	return outcome{granted: num(c.Quantity), wait: wait}
}

// penalty returns how many tokens a refused call takes from a bucket with so many free ones, which may be negative.
func penalty(c *tokenbucket.Call, free *big.Int) *big.Int {
	if !c.Penalize || c.Charge == tokenbucket.Peek {
		return zero
	}
	return greater(zero, lesser(num(c.Quantity), add(free, one)))
}

// intervalModel is Interval: when the last batch came, used tokens were missing.
type intervalModel struct {
	life
	last, used, count, period *big.Int
}

func (m *intervalModel) clone() model { twin := *m; return &twin }

// batches returns the bucket with the batches that have arrived by now.
func (m *intervalModel) batches(now *big.Int) *intervalModel {
	up := *m
	if now.Cmp(m.last) > 0 {
		k := floor(sub(now, m.last), m.period)
		up.used = greater(zero, sub(m.used, mul(k, m.count)))
		up.last = add(m.last, mul(k, m.period))
	}
	return &up
}

// until returns how long it takes until at most spare tokens are missing.
func (m *intervalModel) until(now, spare *big.Int) *big.Int {
	if m.used.Cmp(spare) <= 0 {
		return zero
	}
	k := ceil(sub(m.used, spare), m.count)
	return sub(add(m.last, mul(k, m.period)), now)
}

func (m *intervalModel) decide(instant limit.Instant, c *tokenbucket.Call) (a answer) {
	now, capacity, quantity := num(int64(instant)), num(c.Capacity), num(c.Quantity)
	exists := m.begin(instant)
	is := &intervalModel{last: now, used: num(c.Capacity - c.Init), count: num(c.Count), period: num(int64(c.Period))}
	was := is
	if exists {
		was = m.batches(now)
		is.used = was.used
		if was.count.Cmp(is.count) == 0 && was.period.Cmp(is.period) == 0 && was.used.Sign() > 0 {
			is = was
		}
	}
	store := func() {
		is.life = m.life
		is.keep(instant, add(now, is.until(now, zero)), c)
		*m = *is
	}
	describe := func(s *intervalModel) {
		a.remaining = within(sub(capacity, s.used), zero, capacity)
		a.reset = s.until(now, zero)
		a.overdrawn = s.used.Cmp(capacity) > 0
	}
	describe(was)
	if is.until(now, zero).Cmp(mostDebt) > 0 && is != was {
		a.overflow = true
		return a
	}
	switch {
	case c.Quantity == 0:
		if a.overdrawn {
			a.refused = 1
		}
		return a
	case c.Quantity < 0:
		describe(is)
		if exists && c.Charge != tokenbucket.Peek {
			is.used = greater(zero, add(is.used, quantity))
			store()
			describe(is)
		}
		return a
	}
	o := is.judge(now, c)
	a.wait = o.wait
	before := *is
	if n := penalty(c, sub(capacity, is.used)); o.granted.Sign() == 0 && n.Sign() > 0 {
		if is.used = add(is.used, n); is.until(now, zero).Cmp(mostDebt) <= 0 && is.used.IsInt64() {
			a.refused, a.never = 1, o.never
			store()
			describe(is)
			return a
		}
		*is = before
	}
	if o.granted.Sign() == 0 {
		a.refused, a.never = 1, o.never
		if c.Charge == tokenbucket.Partial {
			a.refused = c.Quantity
		}
		if !exists && c.Init < c.Capacity && c.Charge != tokenbucket.Peek {
			store()
		}
		return a
	}
	a.refused = c.Quantity - o.granted.Int64()
	is.used = add(is.used, o.granted)
	if is.until(now, zero).Cmp(mostDebt) > 0 || !is.used.IsInt64() {
		a.overflow = true
		return a
	}
	if c.Charge == tokenbucket.Peek {
		*is = before
		return a
	}
	store()
	describe(is)
	return a
}

func (m *intervalModel) judge(now *big.Int, c *tokenbucket.Call) outcome {
	quantity, capacity := num(c.Quantity), num(c.Capacity)
	switch {
	case c.Charge == tokenbucket.Force:
		return outcome{granted: quantity}
	case c.Charge == tokenbucket.Partial:
		return outcome{granted: greater(zero, lesser(quantity, sub(capacity, m.used))), wait: zero}
	case quantity.Cmp(capacity) > 0:
		return outcome{granted: zero, never: true}
	}
	wait := m.until(now, sub(capacity, quantity))
	if wait.Cmp(num(int64(c.MaxWait))) > 0 {
		return outcome{granted: zero}
	}
	return outcome{granted: quantity, wait: wait}
}

// leakyModel is Leaky: slots are reserved up to next.
type leakyModel struct {
	life
	next *big.Int
}

func (m *leakyModel) clone() model { twin := *m; return &twin }

func (m *leakyModel) decide(instant limit.Instant, c *tokenbucket.Call) (a answer) {
	now, interval, capacity := num(int64(instant)), num(int64(c.Interval)), num(c.Capacity)
	slot := now
	exists := m.begin(instant)
	if exists {
		slot = greater(now, m.next)
	}
	describe := func(next *big.Int) {
		a.reset = sub(next, now)
		a.remaining = within(sub(capacity, floor(a.reset, interval)), zero, capacity)
		a.overdrawn = floor(a.reset, interval).Cmp(capacity) > 0
	}
	store := func(next *big.Int) {
		m.next = next
		m.keep(instant, next, c)
		describe(next)
	}
	describe(slot)
	a.wait = a.reset
	ahead := floor(a.reset, interval)
	switch {
	case c.Quantity == 0:
		if a.overdrawn {
			a.refused = 1
		}
		return a
	case c.Quantity < 0:
		if exists && c.Charge != tokenbucket.Peek {
			store(greater(now, add(slot, mul(num(c.Quantity), interval))))
		}
		return a
	}
	granted := num(c.Quantity)
	switch {
	case c.Charge == tokenbucket.Force:
	case c.Charge == tokenbucket.Partial:
		granted = greater(zero, lesser(granted, sub(capacity, ahead)))
	case granted.Cmp(capacity) > 0:
		granted, a.never = zero, true
	case add(ahead, sub(granted, one)).Cmp(capacity) >= 0, c.Waits && a.wait.Cmp(num(int64(c.MaxWait))) > 0:
		granted = zero
	}
	after := add(slot, mul(granted, interval))
	switch {
	case granted.Sign() == 0:
		a.refused = 1
		if c.Charge == tokenbucket.Partial {
			a.refused = c.Quantity
		}
	case sub(after, now).Cmp(mostDebt) > 0:
		a.overflow = true
	default:
		a.refused = c.Quantity - granted.Int64()
		if c.Charge != tokenbucket.Peek {
			store(after)
		}
	}
	return a
}
