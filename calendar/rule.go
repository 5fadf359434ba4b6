package calendar

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Unit is the kind of the windows of a [Rule]. The values of the constants are part of the file
// formats.
type Unit uint8

// These are the values of [Unit]. None is the unit of the zero [Rule].
const (
	None  Unit = 0
	Day   Unit = 1
	Week  Unit = 2
	Month Unit = 3
	Year  Unit = 4
)

var unitNames = [...]string{Day: "DAY", Week: "WEEK", Month: "MONTH", Year: "YEAR"}

// String returns the name of the unit in upper case, as clauses have it. For None, and for a number
// that is no unit, it returns "".
func (u Unit) String() string {
	if int(u) >= len(unitNames) {
		return ""
	}
	return unitNames[u]
}

// Rule says when windows begin. The zero value is no rule, and has no windows. Two rules with zones
// of the same [Load] are equal by == if they have the same windows.
type Rule struct {
	Unit Unit
	// From says when in the unit a window begins, in the form of the unit: the minute of the day from
	// 0 to 1439 for Day, the day of the week from 1, a Monday, to 7 for Week, the day of the month from
	// 1 to 31 for Month, and 100 times the month plus the day for Year, such as 229 for 29 February. In
	// a month without that day, the window begins on its last day.
	From uint16
	// Zone is the time zone; nil is UTC.
	Zone *Zone
}

// Valid reports whether r has windows: whether From is valid for the unit.
func (r *Rule) Valid() bool {
	switch r.Unit {
	case Day:
		return r.From < minutesOfDay
	case Week:
		return r.From >= 1 && r.From <= 7
	case Month:
		return r.From >= 1 && r.From <= 31
	case Year:
		month, day := r.monthAndDay()
		return month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth(leapYear, month)
	}
	return false
}

const (
	minutesOfDay = 24 * 60
	leapYear     = 2000
	// firstMonday is the number of the first Monday since the epoch, 1970-01-05.
	firstMonday = 4

	secondsOfDay = 24 * 60 * 60
)

// Longest is an upper bound of the length of a window of the unit: a year of 366 days, and two days
// for changes of the zone.
const Longest = 368 * 24 * time.Hour

// Nominal returns about how long a window of the unit takes: 24 hours for Day, 7 days for Week, 30 for
// Month and 365 for Year. For None it returns 0.
func (u Unit) Nominal() time.Duration {
	days := [...]time.Duration{Day: 1, Week: 7, Month: 30, Year: 365}
	if int(u) >= len(days) {
		return 0
	}
	return days[u] * 24 * time.Hour
}

// Window returns the window of r that contains at: start is at or before at, and end, at which the
// next window begins, is after it. A window that would begin before [limit.MinInstant] begins there,
// and one that would end after [limit.MaxInstant] ends there. r must be valid. Window takes constant
// time and allocates nothing.
func (r *Rule) Window(at limit.Instant) (start, end limit.Instant) {
	now := floorDiv(int64(at), int64(time.Second))
	n := r.number(now + r.Zone.offset(now))
	from := r.begin(n)
	for from > now {
		n--
		from = r.begin(n)
	}
	to := r.begin(n + 1)
	for to <= now { // the offset of the zone has changed, or the zone leaves out a day
		n++
		from, to = to, r.begin(n+1)
	}
	return instant(from), instant(to)
}

// number returns the number of a window that contains the local time, or of one beside it. Windows
// of a rule have consecutive numbers. Local times are in seconds, as if they were times of UTC.
func (r *Rule) number(local int64) int64 {
	day := floorDiv(local, secondsOfDay)
	switch r.Unit {
	case Day:
		return day
	case Week:
		return floorDiv(day-firstMonday, 7)
	}
	year, month := civil(day)
	if r.Unit == Year {
		return year
	}
	return year*12 + month - 1
}

// begin returns the Unix time in seconds at which window n begins.
func (r *Rule) begin(n int64) int64 {
	var local int64
	switch r.Unit {
	case Day:
		local = n*secondsOfDay + int64(r.From)*60
	case Week:
		local = (firstMonday + 7*n + int64(r.From) - 1) * secondsOfDay
	case Month:
		local = dayIn(floorDiv(n, 12), n-12*floorDiv(n, 12)+1, int64(r.From)) * secondsOfDay
	case Year:
		month, day := r.monthAndDay()
		local = dayIn(n, month, day) * secondsOfDay
	}
	return r.Zone.unix(local)
}

// monthAndDay returns the parts of From if the unit is Year.
func (r *Rule) monthAndDay() (month, day int64) { return int64(r.From) / 100, int64(r.From) % 100 }

// dayIn returns the number of a day since the epoch. If the month is shorter than day, it is the last
// day of the month. month is from 1 to 12.
func dayIn(year, month, day int64) int64 {
	return dayNumber(year, month) + min(day, daysOfMonth(year, month)) - 1
}

func daysOfMonth(year, month int64) int64 {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// These are the days of 400 years, and the number of 1970-01-01 since 0000-03-01. The two functions
// below count years from March on, so that the leap day is the last day of its year.
const (
	daysOf400Years = 146097
	epochDay       = 719468
)

// dayNumber returns the number of the first day of a month since 1970-01-01 in the Gregorian calendar.
func dayNumber(year, month int64) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	y, m := year-400*era, (month+9)%12
	return daysOf400Years*era + 365*y + y/4 - y/100 + (153*m+2)/5 - epochDay
}

// civil returns the year and the month of the day with a number since 1970-01-01.
func civil(day int64) (year, month int64) {
	day += epochDay
	era := floorDiv(day, daysOf400Years)
	d := day - daysOf400Years*era
	y := (d - d/1460 + d/36524 - d/146096) / 365
	m := (5*(d-(365*y+y/4-y/100)) + 2) / 153
	year, month = y+400*era, (m+2)%12+1
	if month <= 2 {
		year++
	}
	return year, month
}

// instant returns the instant of a Unix time in seconds, at most the ends of the range of instants.
func instant(seconds int64) limit.Instant {
	return limit.Instant(limit.SatMul(seconds, int64(time.Second)))
}

// floorDiv returns a/b, rounded down. b must be positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
