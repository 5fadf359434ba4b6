package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/calendar"
)

// LimitWords describes what a call of a limiter allows: "100/s" for cl.throttle with the arguments
// "199 100 1", "policy api" for rl.use, and what the first clause allows for rl.multi. words is ""
// for any other call. perSecond is the number of units that the limit allows per second; 0 if it is
// not known.
func LimitWords(command, args string) (words string, perSecond float64) {
	fields := strings.Fields(args)
	if command == "rl.multi" && len(fields) > 0 {
		kinds := map[string]string{"CL": "cl.throttle", "SW": "sw.allow", "TB": "tb.acquire", "CC": "cc.acquire"}
		if command = kinds[strings.ToUpper(fields[0])]; command == "" {
			return "", 0
		}
		fields = fields[1:]
	}
	switch family, _, _ := strings.Cut(command, "."); family {
	case "cl", "tb":
		return perTime(fields, 1)
	case "rl":
		switch {
		case command == "rl.throttle":
			return perTime(fields, 1)
		case command == "rl.use" && len(fields) > 0:
			return "policy " + fields[0], 0
		}
	case "sw":
		return perTime(fields, 0)
	case "cc":
		if len(fields) > 0 {
			return fields[0] + " at once", 0
		}
	}
	return "", 0
}

// perTime describes a limit of the form "count per seconds". The count is in fields[at] and the
// number of seconds in the next field, or the name of a window that follows the calendar. words is ""
// if the fields are no such limit.
func perTime(fields []string, at int) (words string, perSecond float64) {
	if len(fields) < at+2 {
		return "", 0
	}
	count, period := fields[at], fields[at+1]
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return "", 0
	}
	if unit := calendar.ParseUnit([]byte(period)); unit != calendar.None && at == 0 {
		return thousands(n) + "/" + strings.ToLower(period), float64(n) / unit.Nominal().Seconds()
	}
	seconds, err := strconv.ParseInt(period, 10, 64)
	if err != nil || seconds <= 0 {
		return "", 0
	}
	unit := map[int64]string{1: "s", 60: "min", 3600: "h", 86400: "day"}[seconds]
	if unit == "" {
		unit = strconv.FormatInt(seconds, 10) + " s"
	}
	return thousands(n) + "/" + unit, float64(n) / float64(seconds)
}

// thousands formats an integer with a comma between thousands.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func percent(ratio float64) string {
	switch p := 100 * ratio; {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "under 0.1 %"
	case p < 10:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}

// clock formats a civil time as the time of day in UTC, with the date if that is not the day of
// f.At.
func (f *Facts) clock(millis int64) string {
	at, now := time.UnixMilli(millis).UTC(), time.UnixMilli(f.At).UTC()
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Jan 2, 15:04 UTC")
	}
	return at.Format("15:04 UTC")
}

func lasting(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d < 10*time.Microsecond:
		return strconv.FormatFloat(d.Seconds()*1e6, 'f', 1, 64) + " µs"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < 100*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int64(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int64(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int64(d.Hours()))
	}
}

func mebibytes(n int64) string { return thousands(n >> 20) }

// shown formats a key for a sentence: unchanged if it is plain text, otherwise quoted.
func (k Key) shown() string {
	quoted := strconv.Quote(string(k))
	if quoted == `"`+string(k)+`"` && k != "" {
		return string(k)
	}
	return quoted
}
