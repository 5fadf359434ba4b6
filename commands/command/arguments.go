package command

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// ArgsCost is the memory that copied arguments take.
func ArgsCost(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a) + ArgCost
	}
	return n
}

// OnOff reads ON or OFF, in any case.
func OnOff(b []byte) (on, ok bool) {
	on = arg.IsWord(b, "ON")
	return on, on || arg.IsWord(b, "OFF")
}

// ExpiryInstant turns the number of an expiry command into an instant. Redis
// refuses what does not fit its milliseconds since the epoch; what fits those but
// not our nanoseconds is held at the end of time, in 2262.
func ExpiryInstant(st env.Store, n int64, unit time.Duration, absolute bool) (limit.Instant, bool) {
	perMilli := int64(unit / time.Millisecond)
	if n > math.MaxInt64/perMilli || n < math.MinInt64/perMilli {
		return 0, false
	}
	ms := n * perMilli
	if absolute {
		return st.FromCivil(limit.Instant(limit.SatMul(ms, int64(time.Millisecond)))), true
	}
	now := st.Now()
	if ms > math.MaxInt64-int64(now)/int64(time.Millisecond) {
		return 0, false
	}
	return now.Add(time.Duration(limit.SatMul(ms, int64(time.Millisecond)))), true
}

// ParseNotNegative reads a count as Redis does where it must not be negative.
func ParseNotNegative(b []byte) (int64, resp.Error) {
	n, ok := arg.Int(b)
	switch {
	case !ok:
		return 0, resp.ErrNotPositive
	case n < 0:
		return 0, resp.ErrNotPositive
	}
	return n, ""
}

// MaxQueuedBytes bounds what a transaction may queue, and what a client may watch or wait
// for, in bytes of memory.
const MaxQueuedBytes = 16 << 20

// ArgCost is what an argument takes beside its bytes.
const ArgCost = 24 // of an argument, beside its bytes

// QueuedCost is what a queued command takes beside its arguments.
const QueuedCost = 48 // of a command, beside its arguments

// WatchCost is what a watched key takes beside its bytes.
const WatchCost = 256 // of a watched key, beside its bytes

// CloneArgs copies arguments into one piece of memory.
func CloneArgs(args [][]byte) [][]byte {
	out := make([][]byte, len(args))
	CopyArgs(out, args)
	return out
}

// CopyArgs fills out, which may be args, with copies of args in one piece of memory.
func CopyArgs(out, args [][]byte) {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	own := make([]byte, 0, size)
	for i, a := range args {
		from := len(own)
		own = append(own, a...)
		out[i] = own[from:len(own):len(own)]
	}
}
