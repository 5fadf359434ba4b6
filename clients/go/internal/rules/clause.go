package rules

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Family is the kind of a limit: the first word of its clause.
type Family string

// These are the families, with the syntax of their clauses.
const (
	Bucket    Family = "TB"   // TB capacity count period [GREEDY | INTERVAL] [DEBT] [INIT n] [CALLS]
	Window    Family = "SW"   // SW limit <window | DAY | WEEK | MONTH | YEAR> [mode ..] [CALLS]
	Cell      Family = "CL"   // CL max_burst count period [CALLS]
	Lease     Family = "CC"   // CC limit lease
	Unlimited Family = "NONE" // NONE
)

// Clause is one limit, parsed from its text.
type Clause struct {
	Family Family
	// Limit is the capacity of a Bucket, the limit of a Window or a Lease, and the max burst of a Cell, which is one
	// less than its limit. It is at least 0, or -1 for a Cell.
	Limit int64
	// Count is the number of units that come back in each Period of a Bucket or a Cell, at least 1.
	Count int64
	// Period is the period, the length of the window, or the duration of the lease. It is 0 for a
	// window of the calendar.
	Period time.Duration
	// Calendar is DAY, WEEK, MONTH or YEAR for a window of the calendar, and otherwise "".
	Calendar string
	// Options are the words after the numbers, in upper case except for the name of a zone, without CALLS. The instant
	// of ANCHOR is in milliseconds.
	Options []string
	// Calls says that the clause counts each call as one unit, whatever its cost.
	Calls bool
}

// ErrClause is the error for a text that is not a clause.
var ErrClause = errors.New("not a clause such as TB 200 100 1 or SW 1000 60 FIXED")

// ParseClause returns the clause in text. Its time is in units, or has a suffix of its own: ms, s, m, h or d.
// The error wraps [ErrClause]. The server checks the options.
func ParseClause(text string, unit time.Duration) (Clause, error) {
	words := strings.Fields(text)
	fail := func(what string) (Clause, error) { return Clause{}, fmt.Errorf("%w: %s in %q", ErrClause, what, text) }
	if len(words) == 0 {
		return fail("no word")
	}
	c := Clause{Family: Family(strings.ToUpper(words[0]))}
	least, numbers := int64(0), 3
	switch c.Family {
	case Unlimited:
		if len(words) > 1 {
			return fail("words after NONE")
		}
		return c, nil
	case Cell:
		least = -1
	case Bucket:
	case Window, Lease:
		numbers = 2
	default:
		return fail("an unknown first word")
	}
	if len(words) <= numbers {
		return fail("too few numbers")
	}
	var err error
	if c.Limit, err = strconv.ParseInt(words[1], 10, 64); err != nil || c.Limit < least {
		return fail("a wrong limit")
	}
	if numbers == 3 {
		if c.Count, err = strconv.ParseInt(words[2], 10, 64); err != nil || c.Count < 1 {
			return fail("a wrong count")
		}
	}
	switch period := strings.ToUpper(words[numbers]); {
	case c.Family == Window && (period == "DAY" || period == "WEEK" || period == "MONTH" || period == "YEAR"):
		c.Calendar = period
	default:
		if c.Period = parseDuration(words[numbers], unit); c.Period <= 0 {
			return fail("a wrong time")
		}
	}
	c.options(words[numbers+1:], unit)
	return c, nil
}

// options reads the words after the numbers. The instant of ANCHOR is a number of units, and becomes milliseconds.
func (c *Clause) options(words []string, unit time.Duration) {
	for i, w := range words {
		if i == 0 || !strings.EqualFold(words[i-1], "ZONE") {
			w = strings.ToUpper(w)
		}
		if n, err := strconv.ParseInt(w, 10, 64); err == nil && i > 0 && strings.EqualFold(words[i-1], "ANCHOR") {
			w = strconv.FormatInt(n*int64(unit/time.Millisecond), 10)
		}
		c.Options = append(c.Options, w)
	}
	if last := len(c.Options) - 1; last >= 0 && c.Options[last] == "CALLS" {
		c.Options, c.Calls = c.Options[:last:last], true
	}
}

// units has the suffixes of durations, the longer ones first.
var units = []struct {
	suffix string
	unit   time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// parseDuration returns the duration in text, or 0 if text is none or too long.
func parseDuration(text string, unit time.Duration) time.Duration {
	for _, u := range units {
		if rest, ok := strings.CutSuffix(strings.ToLower(text), u.suffix); ok {
			text, unit = rest, u.unit
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > int64(math.MaxInt64/unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// String returns the text of the clause, with times in milliseconds and their suffix.
func (c Clause) String() string {
	words := append(c.bare(), c.Options...)
	if at := c.timeAt(); at > 0 {
		words[at] += "ms"
	}
	if c.Calls {
		words = append(words, "CALLS")
	}
	return strings.Join(words, " ")
}

// timeAt returns the index of the time among the words of the clause, or 0 if it has none.
func (c Clause) timeAt() int {
	switch {
	case c.Family == Unlimited || c.Calendar != "":
		return 0
	case c.Family == Window || c.Family == Lease:
		return 2
	}
	return 3
}

// Units returns how many units a call of this cost takes from the clause.
func (c Clause) Units(cost int64) int64 {
	if c.Calls {
		return max(0, min(cost, 1)) // a call that gives units back gives no call back
	}
	return cost
}

// words returns the words of the clause with its time as a number of milliseconds, and units after the numbers
// unless the clause has none.
func (c Clause) words(units int64) []string {
	words := c.bare()
	if c.Family == Unlimited {
		return words
	}
	if c.Family != Lease {
		words = append(words, strconv.FormatInt(units, 10))
	}
	return append(words, c.Options...)
}

// bare returns the words of the clause before its units and options.
func (c Clause) bare() []string {
	words := []string{string(c.Family)}
	switch c.Family {
	case Unlimited:
		return words
	case Bucket, Cell:
		words = append(words, strconv.FormatInt(c.Limit, 10), strconv.FormatInt(c.Count, 10))
	case Window, Lease:
		words = append(words, strconv.FormatInt(c.Limit, 10))
	}
	if c.Calendar != "" {
		words = append(words, c.Calendar)
	} else {
		words = append(words, strconv.FormatInt(c.Period.Milliseconds(), 10))
	}
	return words
}
