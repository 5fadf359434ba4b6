package clause

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/resp"
)

// Throttle parses args, the arguments of CL.THROTTLE: `key max_burst count period [quantity]`. It
// sets *quota and *quantity. The checks and their order are the same as in redis-cell: the number
// of arguments, then each integer from left to right, then the rate. The error is "" on success.
func Throttle(args [][]byte, quota *gcra.Quota, quantity *int64) resp.Error {
	if len(args) != 4 && len(args) != 5 {
		return resp.ErrCellUsage
	}
	var n [4]int64
	n[3] = 1
	for i, word := range args[1:] {
		v, ok := arg.Short(word)
		if !ok {
			if v, ok = arg.CellInt(word); !ok {
				return cellNotInteger(word)
			}
		}
		n[i] = v
	}
	var err error
	if *quota, err = gcra.NewQuota(n[0], n[1], n[2]); err != nil {
		return resp.ErrCellRate
	}
	*quantity = n[3]
	return ""
}

// ThrottleClause parses a clause with its first word,
//
//	CL max_burst count period [quantity]
//
// and sets *quota and *quantity. Unlike CL.THROTTLE, it parses integers as Redis does, and refuses a
// rate that is not positive. unit is the unit of the period. The error is "" on success.
func ThrottleClause(args [][]byte, unit time.Duration, quota *gcra.Quota, quantity *int64) resp.Error {
	word, args := args[0], args[1:]
	switch {
	case len(args) < 3:
		return resp.SyntaxNear(word)
	case len(args) > 4:
		return resp.SyntaxNear(args[4])
	}
	burst, ok := arg.Int(args[0])
	if !ok {
		return resp.Argument(resp.ErrNotInteger, "max_burst", args[0], "an integer")
	}
	var count, period int64
	if err := arg.Positive(args[1], "count", &count); err != "" {
		return err
	}
	if err := arg.Time(args[2], "period", &period); err != "" {
		return err
	}
	n := int64(1)
	if len(args) > 3 {
		if err := arg.Quantity(args[3], &n); err != "" {
			return err
		}
	}
	q, err := gcra.NewQuotaPer(burst, count, period, unit)
	if err != nil {
		return resp.ErrRateAdvice
	}
	*quota, *quantity = q, n
	return ""
}

// cellNotInteger returns redis-cell's error for word, an argument that is not an integer. In
// redis-cell the argument passes through a C string and an error reply: it ends at its first NUL,
// loses line breaks at its end, and other line breaks become spaces.
func cellNotInteger(word []byte) resp.Error {
	if i := bytes.IndexByte(word, 0); i >= 0 {
		word = word[:i]
	}
	word = bytes.TrimRight(word, "\r\n")
	text := append([]byte(resp.CellNotIntegerPrefix), word...)
	for i, c := range text {
		if c == '\r' || c == '\n' {
			text[i] = ' '
		}
	}
	return resp.Error(text)
}
