package slidingwindow_test

import (
	"math"
	"math/big"

	"github.com/cellserver/cellserver/slidingwindow"
)

// reference has the rules around the models: the effect of a call on one key, and its reply.
type reference struct {
	m model // nil: no key
	// persistent tells that the key has no expiry. An unused key stays until a call that changes it
	// leaves it unused.
	persistent bool
}

// expected is the expected reply to a call. Its times are conditions instead of numbers.
type expected struct {
	overflow  bool
	refused   int64
	remaining int64
	// retry, if set, reports whether the call that field 4 refers to would pass at an instant
	// without further calls. Field 4 is then the first such instant, and otherwise -1.
	retry func(at *big.Int) bool
	// unused reports whether nothing is used at an instant.
	unused func(at *big.Int) bool
}

// call makes the call c at now and returns the expected reply.
func (r *reference) call(now *big.Int, c *slidingwindow.Call) expected {
	if r.m != nil && !r.persistent && r.m.used(now).Sign() == 0 {
		r.m = nil // it has expired
	}
	m := r.m
	if m == nil {
		m = newModel(c, now)
	}
	if log, ok := m.(*logModel); ok {
		log.most = int(c.LogMaxEntries)
	}
	changed := r.m == nil || !m.fits(now, c)
	used := m.used(now)
	passes := func(q int64) bool { return r.passes(m, now, c, q, changed) }

	grant := int64(0)
	switch {
	case c.Quantity <= 0:
	case c.Charge == slidingwindow.Force, passes(c.Quantity):
		grant = c.Quantity
	case c.Charge == slidingwindow.Partial:
		grant = r.most(passes, c.Quantity)
	}
	refused := c.Quantity > 0 && grant == 0 || c.Quantity == 0 && !passes(0)
	charge := num(grant)
	if refused && c.Quantity > 0 && c.Penalize {
		base := used
		if !changed {
			base = m.charged(now)
		}
		ceiling := plus(num(c.Limit), num(1))
		if c.Limit == math.MaxInt64 {
			ceiling = num(c.Limit)
		}
		if base.Cmp(ceiling) > 0 {
			ceiling = base
		}
		charge = minus(smaller(plus(base, num(c.Quantity)), ceiling), base)
	}
	writes := c.Charge != slidingwindow.Peek &&
		(grant > 0 || c.Quantity < 0 && r.m != nil || refused && c.Quantity > 0 && c.Penalize)
	if writes {
		next, overflow := r.write(m, now, c, charge, changed)
		if overflow {
			return expected{overflow: true}
		}
		m, changed = next, false
		if r.m = m; m.used(now).Sign() == 0 {
			r.m = nil
		}
	}
	return r.answer(m, now, c, grant, refused, changed)
}

// passes reports whether q units pass at an instant in the state m. After a conversion only the
// call's own units count against the share of a slot.
func (r *reference) passes(m model, at *big.Int, c *slidingwindow.Call, q int64, changed bool) bool {
	if plus(m.used(at), num(q)).Cmp(num(c.Limit)) > 0 {
		return false
	}
	if !c.Even || q == 0 {
		return true
	}
	own := num(q)
	if !changed {
		own = plus(own, m.slotUsed(at))
	}
	share := (c.Limit-1)/int64(c.Slots) + 1
	return own.Cmp(num(share)) <= 0
}

// most returns the largest quantity up to q that passes, by bisection.
func (r *reference) most(passes func(int64) bool, q int64) int64 {
	low, high := int64(0), q // low passes or is 0, high does not pass
	for high-low > 1 {
		if mid := low + (high-low)/2; passes(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// write charges or refunds units in m. If c has other windows, it does so in a new model that
// starts with m's estimate at now.
func (r *reference) write(m model, now *big.Int, c *slidingwindow.Call, charge *big.Int, changed bool) (model, bool) {
	most := num(math.MaxInt64)
	if changed {
		total := plus(m.used(now), charge)
		if c.Quantity < 0 {
			total = minus(total, smaller(total, minus(zero, num(c.Quantity))))
		}
		m = newModel(c, now)
		if total.Sign() > 0 {
			m.add(now, total)
		}
		return m, total.Cmp(most) > 0
	}
	if c.Quantity < 0 {
		m.refund(now, minus(zero, num(c.Quantity)))
		return m, false
	}
	if plus(m.charged(now), charge).Cmp(most) > 0 {
		return m, true
	}
	if charge.Sign() > 0 {
		m.add(now, charge)
	}
	return m, false
}

func (r *reference) answer(m model, now *big.Int, c *slidingwindow.Call, grant int64, refused, changed bool) expected {
	used := m.used(now)
	e := expected{unused: func(at *big.Int) bool { return m.used(at).Sign() == 0 }}
	if left := minus(num(c.Limit), used); left.Sign() > 0 {
		e.remaining = left.Int64()
	}
	about := c.Quantity // the quantity that field 4 refers to
	switch {
	case refused && c.Charge == slidingwindow.Partial && c.Quantity > 0:
		e.refused, about = c.Quantity, 1
	case refused:
		e.refused = 1
	case c.Charge == slidingwindow.Force && c.Quantity > 0 && used.Cmp(num(c.Limit)) > 0:
		about = 1
	case c.Quantity > 0:
		e.refused = c.Quantity - grant
		return e
	default:
		return e
	}
	share := (c.Limit-1)/int64(max(c.Slots, 1)) + 1
	if about <= c.Limit && (!c.Even || about <= share) {
		e.retry = func(at *big.Int) bool { return r.passes(m, at, c, about, changed) }
	}
	return e
}
