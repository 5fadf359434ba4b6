package command

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// ArgsCost returns the memory in bytes that copies of args take: their bytes, and [ArgCost] for
// each argument.
func ArgsCost(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a) + ArgCost
	}
	return n
}

// OnOff parses b as ON or OFF, in any case. on is true for ON. ok is false for any other word.
func OnOff(b []byte) (on, ok bool) {
	on = arg.IsWord(b, "ON")
	return on, on || arg.IsWord(b, "OFF")
}

// ExpiryInstant converts n, the number of an expiry command in units of unit, into an instant of
// st. If absolute is set, n counts from the Unix epoch, otherwise from st.Now(). ExpiryInstant
// returns false for a number that does not fit into milliseconds since the epoch: Redis refuses
// those, too. A number that fits but exceeds the range of [limit.Instant], in nanoseconds, becomes
// the last representable instant, in the year 2262.
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

// ParseNotNegative parses b as an integer that is not negative. The error is "" on success, and
// otherwise Redis' text for a value that is not positive.
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

// MaxQueuedBytes is the maximum memory, in bytes, of the commands that one transaction queues, of
// the keys that one client watches, and of the keys that one blocked client waits for.
const MaxQueuedBytes = 16 << 20

// ArgCost is the memory in bytes that a copy of an argument takes beyond the argument's own bytes.
const ArgCost = 24

// QueuedCost is the memory in bytes that a queued command takes in addition to its arguments.
const QueuedCost = 48

// WatchCost is the memory in bytes that a watched key takes in addition to its own bytes.
const WatchCost = 256

// CloneArgs returns a deep copy of args. The bytes of all arguments are in one allocation.
func CloneArgs(args [][]byte) [][]byte {
	out := make([][]byte, len(args))
	CopyArgs(out, args)
	return out
}

// CopyArgs sets the elements of out to copies of the elements of args. The copied bytes are in one
// allocation. out must be at least as long as args, and may be args itself.
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
