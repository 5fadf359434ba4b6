package blocking

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/resp"
)

const errTimeoutRange resp.Error = "ERR timeout is out of range"

// parsePopTimeout parses a timeout in seconds. Like Redis it rounds up to whole milliseconds. If
// the result is 0, also from a negative number, there is no timeout. There is none either if the
// duration exceeds the 292 years of int64 nanoseconds.
func parsePopTimeout(b []byte) (time.Duration, resp.Error) {
	if d, err := arg.Timeout(b, time.Second); err == "" {
		return d, ""
	}
	f, ok := parseSeconds(string(b))
	switch {
	case !ok:
		return 0, resp.ErrTimeoutNotFloat
	case f <= -1.0/1000:
		return 0, resp.ErrTimeoutNegative
	case f >= math.MaxInt64/1000:
		return 0, errTimeoutRange
	case f <= 0 || f >= math.MaxInt64/float64(time.Second):
		return 0, ""
	}
	return time.Duration(math.Ceil(f * float64(time.Second))), ""
}

// parseSeconds parses a number as C does: without the underscores of Go, and with hexadecimal
// digits that need no exponent.
func parseSeconds(s string) (f float64, ok bool) {
	lower := strings.ToLower(s)
	if strings.Contains(lower, "_") {
		return 0, false
	}
	if strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		lower += "p0"
	}
	f, err := strconv.ParseFloat(lower, 64)
	return f, !math.IsNaN(f) && (err == nil || math.IsInf(f, 0))
}
