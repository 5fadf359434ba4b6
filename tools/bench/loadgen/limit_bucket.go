package loadgen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
)

// bucketCall is a call of TB.ACQUIRE whose durations have no unit yet, because MS may follow.
type bucketCall struct {
	tokenbucket.Call
	period, warmup int64
	wait           float64
	unit           time.Duration
	// special says that an option changes which calls are refused. Then the check cannot tell how
	// many grants explain a refusal, and the field spell of Limit is 0.
	special bool
}

// bucketLimit parses the arguments of TB.ACQUIRE after the key. It returns errNotALimit for a call
// that the server refuses.
func bucketLimit(r *callReader) (*Limit, error) {
	c := bucketCall{Call: tokenbucket.Call{Mode: tokenbucket.Greedy, Cold: 3}, unit: r.period()}
	if err := r.numbers(&c.Capacity, &c.Count, &c.period); err != nil {
		return nil, err
	}
	if err := r.takeQuantity(); err != nil {
		return nil, err
	}
	if c.Capacity < 1 || c.Count < 1 || c.period < 1 {
		return nil, errNotALimit
	}
	l := &Limit{Most: c.Capacity}
	for word := r.word(); word != ""; word = r.word() {
		if err := c.option(r, word, l); err != nil {
			return nil, err
		}
	}
	c.Period, c.Warmup = units(c.period, c.unit), units(c.warmup, c.unit)
	c.Interval = limit.Interval(c.period, c.unit, c.Count)
	c.Quantity = r.quantity[1]
	c.MaxWait = time.Duration(c.wait * float64(c.unit))
	if c.Validate() != nil {
		return nil, errNotALimit
	}
	l.Name = fmt.Sprintf("token bucket %s, %d and %d per %v", strings.ToUpper(c.Mode.String()), c.Capacity, c.Count, c.Period)
	if l.unbounded == "" {
		l.bound = bucketBound(c.Call)
	}
	if !c.special && l.unbounded == "" {
		l.spell = bucketSpell(c.Call)
	}
	return l, nil
}

// option applies the option word, and parses its value if it has one. It returns errNotALimit if
// the option or the value is invalid.
func (c *bucketCall) option(r *callReader, word string, l *Limit) (err error) {
	switch word {
	case "GREEDY":
	case "INTERVAL":
		c.Mode = tokenbucket.Interval
	case "LEAKY":
		c.Mode = tokenbucket.Leaky
	case "DEBT":
		c.Mode = tokenbucket.Debt
	case "WARMUP":
		c.Mode = tokenbucket.Warmup
		c.warmup, err = r.number()
	case "COLD":
		c.Cold, err = strconv.ParseFloat(r.word(), 64)
	case "WAIT", "BLOCK":
		c.special = true
		c.wait, err = strconv.ParseFloat(r.word(), 64)
		if word == "BLOCK" && c.wait == 0 {
			l.unbounded = "BLOCK 0 grants at any time to come"
		}
	case "INIT":
		c.special = true
		_, err = r.number() // fewer tokens at the start can only reduce the grants
	case "PENALIZE":
		c.special, c.Penalize = true, true
	case "MS":
		c.unit = time.Millisecond
	case "PEEK":
		l.free = true
	case "PARTIAL":
		l.partial = true
	case "FORCE":
		l.unbounded = "FORCE grants beyond the limit"
	default:
		return errNotALimit
	}
	if err != nil {
		return errNotALimit
	}
	return nil
}

// bucketSpell returns the time in which an empty bucket fills up, which is the spell of a valid
// call. For DEBT and WARMUP it returns 0: they refuse because of earlier calls.
func bucketSpell(c tokenbucket.Call) time.Duration {
	switch c.Mode {
	case tokenbucket.Greedy:
		return units(c.Capacity, c.Interval)
	case tokenbucket.Interval:
		return units(limit.CeilDiv(c.Capacity, c.Count), c.Period)
	case tokenbucket.Leaky:
		return units(limit.SatAdd(c.Capacity, 1), c.Interval)
	}
	return 0
}

// bucketBound returns the bound of a valid call: the capacity, the refill during the span, and what
// is granted ahead of time.
func bucketBound(c tokenbucket.Call) func(time.Duration) int64 {
	refill := func(span time.Duration) int64 {
		return limit.SatAdd(int64(span), int64(c.MaxWait)) / int64(c.Interval)
	}
	switch c.Mode {
	case tokenbucket.Interval:
		// Batches are a period apart, so a span contains at most one more than the periods that fit
		// in it.
		return func(span time.Duration) int64 {
			batches := limit.SatAdd(int64(span), int64(c.MaxWait))/int64(c.Period) + 1
			return limit.SatAdd(c.Capacity, limit.SatMul(c.Count, batches))
		}
	case tokenbucket.Leaky:
		// When a unit joins the queue, the queue may be up to one interval short of its capacity.
		// WAIT only shortens the queue.
		return func(span time.Duration) int64 {
			return limit.SatAdd(limit.SatAdd(c.Capacity, 1), int64(span)/int64(c.Interval))
		}
	case tokenbucket.Debt:
		// The last call may take the balance from 0 to minus its quantity.
		return func(span time.Duration) int64 {
			return limit.SatAdd(limit.SatAdd(c.Capacity, refill(span)), max(c.Quantity, 0))
		}
	case tokenbucket.Warmup:
		// Every permit costs at least an interval, rounded down by at most a nanosecond per call.
		// The cost of the last call is paid after it.
		return func(span time.Duration) int64 {
			interval := max(int64(c.Interval)-1, 1)
			paid := limit.SatAdd(int64(span), int64(c.MaxWait)) / interval
			return limit.SatAdd(paid, max(c.Quantity, 1))
		}
	}
	return func(span time.Duration) int64 { return limit.SatAdd(c.Capacity, refill(span)) }
}
