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

// parsePopTimeout parses b as a timeout in seconds, rounded up to whole nanoseconds. A result of 0
// means that there is no timeout. As in Redis, that is also the result for a number between -0.001
// and 0, and for a duration above 292 years, which does not fit into int64 nanoseconds. From
// MaxInt64 milliseconds on the timeout is out of range. The error is "" on success.
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

// parseSeconds parses s as strtold of C parses a floating-point number: underscores, which Go
// allows, are refused, and a hexadecimal number needs no exponent. ok is false for NaN.
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
