package slidingwindow

import (
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Decide decides c at now and writes the result to p. value is the stored value of the key, and
// mode is its mode, or [None] for an absent key. Decide reads value and never writes to it. It
// ignores the expiry of the key, since an expired key counts as absent.
//
// A limit of 0 refuses every quantity above 0, whatever c.Charge is, and the plan stores nothing.
//
// If the mode, window, phase or number of slots of c is not that of the stored value, a call that
// changes the state converts it. The units in use become units of the new windows, as if they had
// been used at now. Every other call is answered from the stored windows with the limit of c, so
// that its times are exact.
//
// The error is [limit.ErrOverflow] if a count would exceed int64, and [limit.ErrWrongType] for an
// unknown mode. With an error, the plan changes nothing, and its decision is undefined. c must be
// valid ([Call.Validate]) and value must pass [Check].
func Decide(mode Mode, value []byte, _, now limit.Instant, c *Call, p *Plan) error {
	p.Action = Keep
	p.found = mode != None
	w := p.open(mode, value, now, c)
	if w == nil {
		return limit.ErrWrongType
	}
	p.Decision = limit.Decision{Limit: c.Limit, RetryAfter: limit.NoRetry}
	p.slot = 0
	if c.Even && !p.replace {
		p.slot = p.buckets.current()
	}
	err := p.decide(w, now, c)
	p.buckets.ring, p.log.ring = nil, nil
	if err != nil {
		p.Action = Keep
	}
	return err
}

// open returns the stored state at now, or an unused limiter of the mode of c if there is none. It
// returns nil for an unknown mode. It sets p.Foreign, and p.replace if the state cannot be updated
// in place.
func (p *Plan) open(mode Mode, value []byte, now limit.Instant, c *Call) window {
	w := p.stored(mode, value, now, c)
	p.Foreign = p.replace && mode != None && !p.over(mode, value, c)
	return w
}

// over reports whether the value has to be replaced only because its window of FIXED or CALENDAR, which is a window of
// c, is over.
func (p *Plan) over(mode Mode, value []byte, c *Call) bool {
	switch {
	case mode != c.Mode:
		return false
	case mode == Fixed:
		return !c.otherWindows(p.fixed.start, p.fixed.window)
	}
	return mode == Calendar && sameRule(value[fixedSize:], &c.Calendar)
}

func (p *Plan) stored(mode Mode, value []byte, now limit.Instant, c *Call) window {
	p.replace = true
	switch mode {
	case None:
		return p.place(now, c, 0)
	case Counter:
		s := &p.counter
		s.decode(value)
		s.roll(now)
		p.replace = c.Mode != Counter || c.otherWindows(s.start, s.window)
		return s
	case Fixed:
		s := &p.fixed
		s.decode(value)
		s.roll(now)
		p.replace = c.Mode != Fixed || s.over() || c.otherWindows(s.start, s.window)
		return s
	case Calendar:
		s := &p.fixed
		s.decode(value)
		s.roll(now)
		p.replace = c.Mode != Calendar || s.over() || !sameRule(value[fixedSize:], &c.Calendar)
		return s
	case Buckets:
		s := &p.buckets
		s.decode(value)
		s.roll(now)
		p.replace = c.Mode != Buckets || s.slots != c.Slots || c.otherWindows(s.start, s.window)
		return s
	case Log:
		s := &p.log
		s.decode(value)
		s.roll(now)
		s.max = c.logMax()
		p.replace = c.Mode != Log || s.window != int64(c.Window)
		return s
	}
	return nil
}

// otherWindows reports whether the windows of c differ from a series of windows of the given
// length, one of which starts at start. If c.First is set, the phase makes no difference.
func (c *Call) otherWindows(start limit.Instant, window int64) bool {
	return window != int64(c.Window) ||
		!c.First && floorMod(int64(start), window) != int64(c.Phase)
}

// place returns a new state in the mode of c. In it, only the given units are in use, and they were
// used at now.
func (p *Plan) place(now limit.Instant, c *Call, units int64) window {
	switch c.Mode {
	case Fixed:
		p.fixed.place(c, now, units)
		return &p.fixed
	case Calendar:
		p.fixed.placeRule(&c.Calendar, now, units)
		p.rule = c.Calendar
		return &p.fixed
	case Buckets:
		p.buckets.place(c, now, units)
		return &p.buckets
	case Log:
		p.log.place(c, now, units)
		return &p.log
	}
	p.counter.place(c, now, units)
	return &p.counter
}

func (p *Plan) decide(w window, now limit.Instant, c *Call) error {
	used := w.used()
	switch {
	case c.Quantity < 0:
		return p.refund(w, now, c, used)
	case c.Quantity == 0:
		if used > uint64(c.Limit) {
			p.refuse(w, c, used, 1, 0)
		}
		p.describe(w)
		return nil
	}
	granted := c.Quantity
	if c.Charge != Force || c.Limit == 0 {
		granted = min(granted, p.free(c, used))
		if granted < c.Quantity && c.Charge != Partial {
			granted = 0
		}
	}
	switch {
	case granted == 0 && c.Penalize && c.Charge != Peek && c.Limit > 0:
		return p.penalize(w, now, c, used)
	case granted == 0 && c.Charge == Partial:
		p.refuse(w, c, used, c.Quantity, 1)
	case granted == 0:
		p.refuse(w, c, used, 1, c.Quantity)
	case c.Charge != Peek:
		return p.admit(w, now, c, used, granted)
	}
	p.describe(w)
	return nil
}

// free returns the number of units that c may take when used units are in use.
func (p *Plan) free(c *Call, used uint64) int64 {
	if used >= uint64(c.Limit) {
		return 0
	}
	free := c.Limit - int64(used)
	if c.Even {
		free = min(free, max(0, c.share()-p.slot))
	}
	return free
}

// refuse sets Refused of the decision to refused, and RetryAfter to the time until quantity units
// would pass. If they can never pass, RetryAfter stays [limit.NoRetry]. used is the number of units
// in use.
func (p *Plan) refuse(w window, c *Call, used uint64, refused, quantity int64) {
	p.Decision.Refused = refused
	if quantity > c.Limit || c.Even && quantity > c.share() {
		return
	}
	var wait time.Duration
	if used > uint64(c.Limit-quantity) {
		wait = w.retry(c.Limit, quantity)
	}
	if c.Even && quantity > 0 && p.slot > c.share()-quantity {
		wait = max(wait, p.buckets.nextSlot())
	}
	p.Decision.RetryAfter = wait
}

func (p *Plan) admit(w window, now limit.Instant, c *Call, used uint64, granted int64) error {
	w, err := p.charge(w, now, c, used, uint64(granted))
	if err != nil {
		return err
	}
	if after := w.used(); c.Charge == Force && after > uint64(c.Limit) {
		p.refuse(w, c, after, 0, 1)
	}
	p.Decision.Refused = c.Quantity - granted
	p.conclude(w, now, c)
	return nil
}

// penalize refuses c and charges its quantity nevertheless, up to one unit beyond the limit. used
// is the number of units in use.
func (p *Plan) penalize(w window, now limit.Instant, c *Call, used uint64) error {
	before := used
	if !p.replace {
		before = w.charged()
	}
	beyond := uint64(limit.SatAdd(c.Limit, 1))
	penalty := uint64(0)
	if before < beyond {
		penalty = min(uint64(c.Quantity), beyond-before)
	}
	if penalty > 0 || p.replace {
		var err error
		if w, err = p.charge(w, now, c, used, penalty); err != nil {
			return err
		}
		p.conclude(w, now, c)
	} else {
		p.describe(w)
	}
	p.refuse(w, c, w.used(), 1, c.Quantity)
	return nil
}

// charge adds n units to w, and returns the limiter that has them. If p.replace is set, that is a
// new limiter in the mode of c, which also has the used units. The error is [limit.ErrOverflow] if
// a count would exceed int64.
func (p *Plan) charge(w window, now limit.Instant, c *Call, used, n uint64) (window, error) {
	if p.replace {
		total, carry := bits.Add64(used, n, 0)
		if carry != 0 || total > math.MaxInt64 {
			return nil, limit.ErrOverflow
		}
		w = p.place(now, c, int64(total))
	} else if !w.add(int64(n)) {
		return nil, limit.ErrOverflow
	}
	if c.Even {
		p.slot = p.buckets.current()
	}
	return w, nil
}

// refund decides a call that gives units back. used is the number of units in use. The call never
// creates a key and is never refused. The error is [limit.ErrOverflow] if a count would exceed
// int64.
func (p *Plan) refund(w window, now limit.Instant, c *Call, used uint64) error {
	n := -uint64(c.Quantity) // this expression is correct for the smallest int64, too
	switch {
	case !p.found || c.Charge == Peek:
		p.describe(w)
		return nil
	case !p.replace:
		w.take(n)
	default:
		rest := used - min(n, used)
		if rest > math.MaxInt64 {
			return limit.ErrOverflow
		}
		w = p.place(now, c, int64(rest))
	}
	p.conclude(w, now, c)
	return nil
}

// describe sets Remaining and ResetAfter of the decision according to the state w.
func (p *Plan) describe(w window) {
	if used := w.used(); used < uint64(p.Decision.Limit) {
		p.Decision.Remaining = p.Decision.Limit - int64(used)
	}
	p.Decision.ResetAfter = w.reset()
}

// conclude describes w, and plans to store it if units are in use. Otherwise it plans to delete the
// key, if the key exists.
func (p *Plan) conclude(w window, now limit.Instant, c *Call) {
	p.describe(w)
	switch {
	case p.Decision.ResetAfter > 0:
		p.Action = Store
		p.Mode = c.Mode
		p.Expiry = now.Add(p.Decision.ResetAfter)
	case p.found:
		p.Action = Delete
	}
}
