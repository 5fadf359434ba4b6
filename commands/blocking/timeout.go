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

// parsePopTimeout reads a timeout in seconds as Redis does, which rounds up to whole
// milliseconds, so that 0, and a negative number that makes 0 of them, is no bound. What
// int64 nanoseconds do not hold, 292 years, is none either.
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

// parseSeconds reads a number as C does, which knows neither the underscores of Go nor its
// need of an exponent behind hexadecimal digits.
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
