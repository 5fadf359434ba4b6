// Package backoff decides how long a caller has to wait after each call: twice as long as after the
// one before. So a client that guesses passwords has a few attempts, and then hardly any. If a
// caller waits for twice the required time, its next call has the first wait again.
//
// [Decide] decides a [Call] on the bytes that are stored under a key, and returns the bytes to
// store next. It reads no clock and stores nothing.
package backoff

import (
	"encoding/binary"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Call has the first wait and the longest wait. First must be positive, and Longest must not be
// less than First.
type Call struct{ First, Longest time.Duration }

// stateSize is the length in bytes of a state: the instant from which the next call is admitted,
// and the wait that ends at that instant, 8 bytes each.
const stateSize = 16

// Decide admits a call at now, or returns in d how long to wait. state is the result next
// of the last admitted call, or empty. next is nil if the call is denied, since that
// changes nothing. The caller has to drop next at the instant until. The error is
// limit.ErrWrongType if state has neither 0 nor 16 bytes.
func Decide(state []byte, now limit.Instant, c Call) (d limit.Decision, next []byte, until limit.Instant, err error) {
	var free limit.Instant
	var wait int64
	switch len(state) {
	case 0:
		free = now
	case stateSize:
		free = limit.Instant(binary.BigEndian.Uint64(state))
		wait = max(0, int64(binary.BigEndian.Uint64(state[8:])))
	default:
		return d, nil, 0, limit.ErrWrongType
	}
	d = limit.Decision{Limit: 1, RetryAfter: limit.NoRetry}
	if now < free {
		d.Refused, d.RetryAfter = 1, free.Sub(now)
		d.ResetAfter = end(free, wait).Sub(now)
		return d, nil, 0, nil
	}
	wait = max(int64(c.First), min(limit.SatMul(2, wait), int64(c.Longest)))
	free = now.Add(time.Duration(wait))
	until = end(free, wait)
	d.ResetAfter = until.Sub(now)
	next = binary.BigEndian.AppendUint64(nil, uint64(free))
	return d, binary.BigEndian.AppendUint64(next, uint64(wait)), until, nil
}

// end returns the instant at which a wait that ended at free is forgotten. It is before the last
// instant, which as an expiry would mean never.
func end(free limit.Instant, wait int64) limit.Instant {
	return min(free.Add(time.Duration(wait)), limit.MaxInstant-1)
}
