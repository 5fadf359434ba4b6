package tokenbucket

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// These are the errors of [Check].
var (
	errMode  = errors.New("unknown token bucket mode")
	errSize  = errors.New("a token bucket of another length than its mode has")
	errState = errors.New("a token bucket with a number out of range")
)

// size returns the length of the stored form in bytes, or 0 for a mode that is not stored. The form
// has 8 bytes for each number, little-endian:
//
//	Greedy    TAT, T
//	Debt      TAT, T, capacity
//	Interval  last, used, count, period
//	Leaky     next, T
//	Warmup    next, stored, most (doubles), warm-up duration
//
// Instants are in Unix nanoseconds, and durations in nanoseconds.
func (m Mode) size() int {
	switch m {
	case Greedy, Leaky:
		return 16
	case Debt:
		return 24
	case Interval, Warmup:
		return 32
	}
	return 0
}

// append appends the stored form of s to dst and returns the extended slice.
func (s *state) append(dst []byte) []byte {
	dst = appendInt(dst, int64(s.at))
	switch s.mode {
	case Greedy, Leaky:
		return appendInt(dst, int64(s.interval))
	case Debt:
		return appendInt(appendInt(dst, int64(s.interval)), s.capacity)
	case Interval:
		return appendInt(appendInt(appendInt(dst, s.used), s.count), int64(s.period))
	}
	dst = appendInt(dst, int64(math.Float64bits(s.stored)))
	dst = appendInt(dst, int64(math.Float64bits(s.most)))
	return appendInt(dst, int64(s.warmup))
}

func appendInt(dst []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

// decode returns the bucket that is stored in value, which Check must have accepted.
func decode(mode Mode, value []byte) state {
	s := state{mode: mode, at: limit.Instant(word(value, 0))}
	switch mode {
	case Greedy, Leaky:
		s.interval = time.Duration(word(value, 1))
	case Debt:
		s.interval, s.capacity = time.Duration(word(value, 1)), word(value, 2)
	case Interval:
		s.used, s.count, s.period = word(value, 1), word(value, 2), time.Duration(word(value, 3))
	case Warmup:
		s.stored = math.Float64frombits(uint64(word(value, 1)))
		s.most = math.Float64frombits(uint64(word(value, 2)))
		s.warmup = time.Duration(word(value, 3))
	}
	return s
}

func word(value []byte, i int) int64 {
	return int64(binary.LittleEndian.Uint64(value[8*i:]))
}

// Check returns nil if value, which may come from a file, is a bucket stored in mode, otherwise an
// error. With a value that Check accepts, Decide returns no other error than [limit.ErrOverflow].
func Check(mode Mode, value []byte) error {
	if mode.size() == 0 {
		return errMode
	}
	if len(value) != mode.size() {
		return errSize
	}
	s := decode(mode, value)
	valid := true
	switch mode {
	case Greedy, Leaky:
		valid = s.interval > 0
	case Debt:
		valid = s.interval > 0 && s.capacity > 0 && !exceeds(s.interval, uint64(s.capacity))
	case Interval:
		valid = s.used >= 0 && s.count > 0 && s.period > 0
	case Warmup:
		valid = s.warmup > 0 && s.warmup <= maxWarmup &&
			s.stored >= 0 && s.stored <= s.most && s.most > 0 && s.most <= float64(maxDebt)
	}
	if !valid {
		return errState
	}
	return nil
}
