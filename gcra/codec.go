package gcra

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// StateSize is the length of a stored state: the TAT, 8 bytes little-endian.
const StateSize = 8

var errStateSize = errors.New("a TAT takes 8 bytes")

// AppendState appends the stored form of tat to dst.
func AppendState(dst []byte, tat limit.Instant) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(tat))
}

// PutState writes the stored form of tat over the first 8 bytes of value.
func PutState(value []byte, tat limit.Instant) {
	binary.LittleEndian.PutUint64(value, uint64(tat))
}

// State reads the TAT of a stored state, which [Check] has accepted.
func State(value []byte) limit.Instant {
	return limit.Instant(binary.LittleEndian.Uint64(value))
}

// Check reports whether value, which may come from a file, is a stored state.
// Every TAT is a valid one.
func Check(value []byte) error {
	if len(value) != StateSize {
		return errStateSize
	}
	return nil
}

// AppendDecimal appends tat as GET shows it: nanoseconds in decimal, the same string that
// redis-cell stores.
func AppendDecimal(dst []byte, tat limit.Instant) []byte {
	return strconv.AppendInt(dst, int64(tat), 10)
}

// ParseDecimal parses the TAT in a plain string, such as a key that was copied from redis-cell.
// Like redis-cell it accepts an int64 with an optional sign, plus or minus, and any leading zeros.
// The error for everything else is [limit.ErrNotInteger]; redis-cell crashes there.
func ParseDecimal(s []byte) (limit.Instant, error) {
	tat, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		return 0, limit.ErrNotInteger
	}
	return limit.Instant(tat), nil
}
