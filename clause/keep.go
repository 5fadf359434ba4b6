package clause

import (
	"bytes"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Keep is the part of a limit that a call leaves for others: a number of units, or a share of the limit. The zero value
// leaves nothing.
type Keep struct {
	// Units is the number of units that a call under one limit leaves, or 0.
	Units int64
	// Percent is the share of each limit, from 0 to 100. Units is then 0.
	Percent int64
}

// CallOptions are the options of TB.ACQUIRE and SW.ALLOW that do not concern the limiter itself.
type CallOptions struct {
	Identity
	// Keep is the parsed argument of the option KEEP.
	Keep Keep
}

// ParseKeep parses text, the argument of KEEP: a number of units from 1, or a percentage from 1 to 100 such as 30%.
// The error is "" on success.
func ParseKeep(text []byte) (k Keep, err resp.Error) {
	number, share := bytes.CutSuffix(text, []byte{'%'})
	n, ok := arg.Int(number)
	switch {
	case !ok:
		return k, resp.Argument(resp.ErrNotInteger, "KEEP", text, mustKeep)
	case n < 1 || share && n > 100:
		return k, resp.Argument(resp.ErrNotPositive, "KEEP", text, mustKeep)
	case share:
		k.Percent = n
	default:
		k.Units = n
	}
	return k, ""
}

const mustKeep = "a number of units, or a share from 1% to 100%"

// None reports whether k leaves nothing.
func (k Keep) None() bool { return k == Keep{} }

// Of returns the number of units of a limit that the call has to leave. A share is rounded up, so that the call leaves
// at least that share.
func (k Keep) Of(most int64) int64 {
	if k.Percent > 0 {
		return limit.MulDivCeil(max(most, 0), k.Percent, 100)
	}
	return k.Units
}

// Rank returns the rank of a waiting call under a limit: the part that the call leaves, in millionths of the limit, and
// 0 if it leaves nothing. Calls with a lower rank get room first.
func (k Keep) Rank(most int64) int64 {
	const whole = 1_000_000
	if k.Percent > 0 || k.Units == 0 {
		return k.Percent * (whole / 100)
	}
	return limit.MulDivCeil(k.Units, whole, max(most, 1))
}
