package rules

import (
	"slices"
	"time"
)

// Share returns the part of a number of units that one of several instances has when the server is away:
// max(1, floor(units / instances)). A number that is not positive, and any number if instances is less than
// 2, stays as it is.
func Share(units, instances int64) int64 {
	if units <= 0 || instances < 2 {
		return units
	}
	return max(1, units/instances)
}

// Share returns the clause of one of several instances: its limit, or its capacity and its count, become
// their [Share]. A max burst of CL is a limit less one.
func (c Clause) Share(instances int64) Clause {
	switch c.Family {
	case Cell:
		c.Limit = Share(c.Limit+1, instances) - 1
		c.Count = Share(c.Count, instances)
	case Bucket:
		c.Limit, c.Count = Share(c.Limit, instances), Share(c.Count, instances)
	case Window, Lease:
		c.Limit = Share(c.Limit, instances)
	case Unlimited:
	}
	return c
}

// day is the length of a day on which the clocks are not changed.
const day = 24 * time.Hour

// calendarDays are the lengths, in days, that a limiter in the process uses for windows of the calendar.
var calendarDays = map[string]time.Duration{"DAY": 1, "WEEK": 7, "MONTH": 30, "YEAR": 365}

// Local returns the clause that the limiter in the process decides in place of c, which is the same unless c has an option
// that it does not have. A bucket becomes GREEDY. A window becomes FIXED if it is, or if it is one of the calendar,
// which becomes 1, 7, 30 or 365 days from 1970 on. Otherwise it becomes COUNTER.
func (c Clause) Local() Clause {
	options := c.Options
	c.Options = nil
	if c.Family != Window {
		return c
	}
	mode := "COUNTER"
	if slices.Contains(options, "FIXED") {
		mode = "FIXED"
	}
	if days, ok := calendarDays[c.Calendar]; ok {
		c.Calendar, c.Period, mode = "", days*day, "FIXED"
	}
	c.Options = []string{mode}
	return c
}

// UnlimitedUnits is the limit that replies have for a clause NONE.
const UnlimitedUnits = 4294967295

// MostUnits returns the limit as replies have it.
func (c Clause) MostUnits() int64 {
	switch c.Family {
	case Cell:
		return c.Limit + 1
	case Unlimited:
		return UnlimitedUnits
	case Bucket, Window, Lease:
	}
	return c.Limit
}
