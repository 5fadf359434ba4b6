package gcra

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// StateSize is the length in bytes of a stored state, which is the TAT as a little-endian integer.
const StateSize = 8

var errStateSize = errors.New("a TAT takes 8 bytes")

// AppendState appends the stored form of tat to dst and returns the extended slice.
func AppendState(dst []byte, tat limit.Instant) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(tat))
}

// PutState writes the stored form of tat over the first 8 bytes of value.
func PutState(value []byte, tat limit.Instant) {
	binary.LittleEndian.PutUint64(value, uint64(tat))
}

// State returns the TAT of the stored state value, which [Check] must have accepted.
func State(value []byte) limit.Instant {
	return limit.Instant(binary.LittleEndian.Uint64(value))
}

// Check returns nil if value, which may come from a file, is a stored state, and otherwise an
// error. Every value of the right length is valid.
func Check(value []byte) error {
	if len(value) != StateSize {
		return errStateSize
	}
	return nil
}

// AppendDecimal appends tat as GET shows it, and returns the extended slice. The text is the number
// of nanoseconds in decimal, the same that redis-cell stores.
func AppendDecimal(dst []byte, tat limit.Instant) []byte {
	return strconv.AppendInt(dst, int64(tat), 10)
}

// ParseDecimal returns the TAT in the plain string s, such as the value of a key copied from
// redis-cell. Like redis-cell it accepts an int64 with an optional sign, plus or minus, and leading
// zeros. For any other string it returns [limit.ErrNotInteger]; redis-cell crashes there.
func ParseDecimal(s []byte) (limit.Instant, error) {
	tat, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		return 0, limit.ErrNotInteger
	}
	return limit.Instant(tat), nil
}
