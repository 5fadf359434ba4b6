package loadgen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// windowLimit parses the arguments of SW.ALLOW after the key. It returns errNotALimit for a call
// that the server refuses.
func windowLimit(r *callReader) (*Limit, error) {
	call := slidingwindow.Call{Mode: slidingwindow.Counter}
	var window int64
	if err := r.numbers(&call.Limit); err != nil {
		return nil, err
	}
	if len(r.words) > 0 {
		call.Calendar.Unit = calendar.ParseUnit([]byte(r.words[0]))
	}
	if call.Calendar.Unit != calendar.None {
		r.word()
		call.Mode, call.Calendar.From = slidingwindow.Calendar, call.Calendar.Unit.First()
	} else if err := r.numbers(&window); err != nil {
		return nil, err
	}
	if err := r.takeQuantity(); err != nil {
		return nil, err
	}
	unit := r.period()
	l := &Limit{Most: call.Limit}
	for word := r.word(); word != ""; word = r.word() {
		if err := windowOption(r, word, &call, &unit, l); err != nil {
			return nil, err
		}
	}
	call.Window = units(window, unit)
	call.LogMaxEntries = call.Limit // the server's own maximum is not known here
	if call.Limit < 1 || call.Validate() != nil {
		return nil, errNotALimit
	}
	l.Name = fmt.Sprintf("sliding window %s, %d per %v", windowMode(&call), call.Limit, call.Window)
	if call.Mode == slidingwindow.Calendar {
		l.Name = fmt.Sprintf("sliding window %s, %d per %s", windowMode(&call), call.Limit, call.Calendar.String())
	}
	if l.unbounded == "" {
		l.bound, l.spell = windowBound(call), windowSpell(&call)
	}
	return l, nil
}

// windowMode returns the mode of c as a call of SW.ALLOW spells it, such as BUCKETS 6 EVEN.
func windowMode(c *slidingwindow.Call) string {
	name := strings.ToUpper(c.Mode.String())
	if c.Mode == slidingwindow.Buckets {
		name = fmt.Sprintf("%s %d", name, c.Slots)
	}
	if c.Even {
		name += " EVEN"
	}
	return name
}

// windowSpell returns the spell of a valid call, 0 if none is known: EVEN refuses because of one
// slot, PENALIZE counts refused calls, and BLOCK counts waiting calls.
func windowSpell(c *slidingwindow.Call) time.Duration {
	switch {
	case c.Penalize, c.Block, c.Even:
		return 0
	case c.Mode == slidingwindow.Counter:
		// Units of the window before that still count may have been granted at its beginning.
		return units(2, c.Window)
	case c.Mode == slidingwindow.Calendar:
		return units(2, c.Calendar.Unit.Nominal()) // longer than any window, such as a day with a change of the clock
	}
	return c.Window
}

// calendarOption applies the option word of a window of a calendar, and parses its value. It returns
// errNotALimit if the option or the value is invalid.
func calendarOption(r *callReader, word string, c *calendar.Rule) error {
	var ok bool
	if len(r.words) > 0 && c.Unit != calendar.None {
		value := r.words[0]
		if r.word(); word == "ZONE" {
			c.Zone, ok = calendar.Load(value)
		} else {
			c.From, ok = c.Unit.ParseFrom([]byte(value))
		}
	}
	if !ok {
		return errNotALimit
	}
	return nil
}

// windowOption applies the option word, and parses its value if it has one. It returns errNotALimit
// if the option or the value is invalid.
func windowOption(r *callReader, word string, call *slidingwindow.Call, unit *time.Duration, l *Limit) error {
	switch word {
	case "COUNTER":
		call.Mode = slidingwindow.Counter
	case "FIXED":
		if call.Mode != slidingwindow.Calendar { // FIXED does not have this change
			call.Mode = slidingwindow.Fixed
		}
	case "ZONE", "FROM":
		return calendarOption(r, word, &call.Calendar)
	case "LOG":
		call.Mode = slidingwindow.Log
	case "BUCKETS":
		call.Mode = slidingwindow.Buckets
		slots, err := strconv.Atoi(r.word())
		if err != nil {
			return errNotALimit
		}
		call.Slots = slots
	case "EVEN":
		call.Even = true
	case "MS":
		*unit = time.Millisecond
	case "PEEK":
		l.free = true
	case "PARTIAL":
		l.partial = true
	case "FORCE":
		l.unbounded = "FORCE grants beyond the limit"
	case "PENALIZE":
		call.Penalize = true
	case "BLOCK":
		call.Block = true
		r.word()
	case "ANCHOR":
		r.word()
	default:
		return errNotALimit
	}
	return nil
}

// windowBound returns the bound of a valid call. A span may begin in the middle of a window: the
// instants at which the server's windows begin are not known.
func windowBound(c slidingwindow.Call) func(time.Duration) int64 {
	most, window := c.Limit, c.Window
	windows := func(span time.Duration) int64 { return int64(span / window) }
	switch c.Mode {
	case slidingwindow.Fixed:
		// The span may overlap a part of one more window at either end.
		return func(span time.Duration) int64 { return limit.SatMul(most, windows(span)+2) }
	case slidingwindow.Calendar:
		window = c.Calendar.Unit.Nominal() / 2 // shorter than any window of the unit
		return func(span time.Duration) int64 { return limit.SatMul(most, windows(span)+2) }
	case slidingwindow.Log:
		return func(span time.Duration) int64 { return limit.SatMul(most, windows(span)+1) }
	case slidingwindow.Buckets:
		return bucketsBound(c)
	}
	// COUNTER: in window k at most the limit passes, and up to the instant e in it at most limit -
	// floor(prev*(W-e)/W). The sum is the limit, plus the limit's share of the span, plus one for
	// rounding.
	return func(span time.Duration) int64 {
		return limit.SatAdd(limit.SatAdd(most, share(most, span, window)), 1)
	}
}

// bucketsBound returns the bound of BUCKETS. Any m neighbouring slots, m being the number of slots
// of a window, pass at most the limit together. With EVEN each slot passes at most its share. A
// span touches at most two slots more than fit in it.
func bucketsBound(c slidingwindow.Call) func(time.Duration) int64 {
	most, slots := c.Limit, int64(c.Slots)
	return func(span time.Duration) int64 {
		touched := limit.SatAdd(share(slots, span, c.Window), 2)
		bound := limit.SatMul(most, limit.CeilDiv(touched, slots))
		if c.Even {
			bound = min(bound, limit.SatMul(limit.CeilDiv(most, slots), touched))
		}
		return bound
	}
}
