package ban

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ErrValue means that a value is not a state of this package.
var ErrValue = errors.New("not the state of a ban")

// Length is the number of bytes of a state.
const Length = 8 + 4 + 8 + 2

// state is the decoded state of a key.
type state struct {
	start limit.Instant // start of the window of denials; 0 without a window
	count uint32        // number of denials in the window; 0 without a window
	until limit.Instant // end of the last ban, or the instant after it to which the level has fallen
	level uint16        // the level at that instant
}

// append appends the encoded state s to dst.
func (s *state) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.start))
	dst = binary.BigEndian.AppendUint32(dst, s.count)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.until))
	return binary.BigEndian.AppendUint16(dst, s.level)
}

// decode returns the state of value, which must pass [Check] or be empty.
func decode(value []byte) (s state) {
	if len(value) == Length {
		s.start = limit.Instant(binary.BigEndian.Uint64(value))
		s.count = binary.BigEndian.Uint32(value[8:])
		s.until = limit.Instant(binary.BigEndian.Uint64(value[12:]))
		s.level = binary.BigEndian.Uint16(value[20:])
	}
	return s
}

// Check returns [ErrValue] if value is not a state that [Plan.Append] writes.
func Check(value []byte) error {
	if len(value) != Length {
		return ErrValue
	}
	if s := decode(value); s.count > MaxRefusals || s.count == 0 && s.start != 0 {
		return ErrValue
	}
	return nil
}

// levelAt returns the level at now. The level falls by one for each Max without a ban.
func (s *state) levelAt(now limit.Instant, most time.Duration) uint16 {
	passed := max(0, now.Sub(s.until))
	return s.level - uint16(min(int64(s.level), int64(passed/most)))
}

// roll brings the state to now: it drops a window that has ended, and lowers the level.
func (s *state) roll(c *Call, now limit.Instant) {
	if s.count > 0 && now.Sub(s.start) >= c.Window {
		s.start, s.count = 0, 0
	}
	if level := s.levelAt(now, c.Max); level < s.level {
		s.until, s.level = s.until.Add(time.Duration(s.level-level)*c.Max), level
	}
}

// expiry returns the instant from which s is equivalent to no state.
func (s *state) expiry(c *Call) limit.Instant {
	end := s.until.Add(time.Duration(limit.SatMul(int64(s.level), int64(c.Max))))
	if s.count > 0 {
		end = max(end, s.start.Add(c.Window))
	}
	return min(end, limit.MaxInstant-1)
}
