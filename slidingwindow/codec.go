package slidingwindow

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cellserver/cellserver/limit"
)

// Check returns nil if value is valid for [Decide] under mode, otherwise [ErrCorrupt]. value may be
// any bytes, such as the bytes of a file. Check never panics.
func Check(mode Mode, value []byte) error {
	var ok bool
	switch mode {
	case Counter:
		ok = len(value) == counterSize && windowOK(value, 1) && getInt(value, 2) >= 0 && getInt(value, 3) >= 0
	case Fixed:
		ok = len(value) == fixedSize && windowOK(value, 1) && getInt(value, 2) >= 0
	case Calendar:
		ok = checkCalendar(value)
	case Log:
		ok = checkLog(value)
	case Buckets:
		ok = checkBuckets(value)
	}
	if !ok {
		return ErrCorrupt
	}
	return nil
}

func windowOK(value []byte, i int) bool {
	w := getInt(value, i)
	return w > 0 && w <= int64(MaxWindow)
}

func checkBuckets(value []byte) bool {
	if len(value) < bucketHeader || (len(value)-bucketHeader)%word != 0 || !windowOK(value, 1) {
		return false
	}
	ring := value[bucketHeader:]
	slots := len(ring) / word
	slot := getInt(value, 2)
	if slots < MinSlots || slots > MaxSlots || slot < 0 || slot >= int64(slots) {
		return false
	}
	sum := int64(0)
	for i := range slots {
		n := slotCount(ring, i)
		if n < 0 || n > math.MaxInt64-sum {
			return false
		}
		sum += n
	}
	return true
}

func checkLog(value []byte) bool {
	if len(value) < logHeader || (len(value)-logHeader)%entrySize != 0 || !windowOK(value, 0) {
		return false
	}
	var s log
	size := s.decode(value)
	if size < 1 || size > largestRing || bits.OnesCount(uint(size)) != 1 ||
		s.head >= size || s.kept < 0 || s.kept > size {
		return false
	}
	before := entry{at: limit.MinInstant, total: s.base}
	for i := range s.kept {
		e := s.at(i)
		ordered := e.at > before.at || i == 0
		if !ordered || e.total == before.total || e.total-before.total > math.MaxInt64-(before.total-s.base) {
			return false
		}
		before = e
	}
	return true
}

func (s *counter) decode(value []byte) {
	*s = counter{
		start:  limit.Instant(getInt(value, 0)),
		window: getInt(value, 1),
		curr:   getInt(value, 2),
		prev:   getInt(value, 3),
	}
}

func (s *counter) encode(value []byte) {
	putInt(value, 0, int64(s.start))
	putInt(value, 1, s.window)
	putInt(value, 2, s.curr)
	putInt(value, 3, s.prev)
}

func (s *fixed) decode(value []byte) {
	*s = fixed{start: limit.Instant(getInt(value, 0)), window: getInt(value, 1), count: getInt(value, 2)}
}

func (s *fixed) encode(value []byte) {
	putInt(value, 0, int64(s.start))
	putInt(value, 1, s.window)
	putInt(value, 2, s.count)
}

func (s *buckets) decode(value []byte) {
	*s = buckets{
		start:  limit.Instant(getInt(value, 0)),
		window: getInt(value, 1),
		slot:   int(getInt(value, 2)),
		ring:   value[bucketHeader:],
		slots:  (len(value) - bucketHeader) / word,
	}
}

// encode writes the changes by the call into value. value has the stored ring, whose other counters
// stay as they are, or any bytes if s is a new state.
func (s *buckets) encode(value []byte) {
	putInt(value, 0, int64(s.start))
	putInt(value, 1, s.window)
	putInt(value, 2, int64(s.slot))
	ring := value[bucketHeader:]
	for depth := range min(max(s.shift, s.top), s.slots) {
		putInt(ring, s.position(depth), 0)
	}
	if s.top < s.slots {
		putInt(ring, s.position(s.top), s.head)
	}
}

// decode decodes value into s, and returns the capacity of the ring in entries. s.ring refers to
// the bytes of value.
func (s *log) decode(value []byte) int {
	*s = log{
		window: getInt(value, 0),
		base:   uint64(getInt(value, 1)),
		head:   int(binary.LittleEndian.Uint32(value[2*word:])),
		kept:   int(binary.LittleEndian.Uint32(value[2*word+word/2:])),
		ring:   value[logHeader:],
	}
	return entries(s.ring)
}

func (s *log) encodeHeader(value []byte, head int) {
	putInt(value, 0, s.window)
	putInt(value, 1, int64(s.base))
	binary.LittleEndian.PutUint32(value[2*word:], uint32(head))
	binary.LittleEndian.PutUint32(value[2*word+word/2:], uint32(s.size()))
}

// encode writes the changes by the call into value: the header and the last entry.
func (s *log) encode(value []byte) {
	s.encodeHeader(value, s.head)
	if s.placed {
		ring := value[logHeader:]
		putEntry(ring, (s.head+s.kept)&(entries(ring)-1), s.last)
	}
}

// relay writes the whole log to value, with the oldest entry first. old is the stored value, which
// has the entries that s keeps.
func (s *log) relay(value, old []byte) {
	s.encodeHeader(value, 0)
	to := value[logHeader:]
	if s.kept > 0 {
		from := old[logHeader:]
		first := copy(to, from[s.head*entrySize:min((s.head+s.kept)*entrySize, len(from))])
		copy(to[first:s.kept*entrySize], from)
	}
	if s.placed {
		putEntry(to, s.kept, s.last)
	}
}

// capacity returns the capacity that the ring should have for the present number of entries. size
// is its present capacity. The capacity doubles when the entries no longer fit, and is reduced when
// an eighth of the ring or less is used.
func (s *log) capacity(size int) int {
	n := s.size()
	if n <= size && (size <= smallestRing || n*8 > size) {
		return size
	}
	if n <= size {
		n *= 2 // the new ring has room for as many entries again
	}
	return max(smallestRing, 1<<bits.Len(uint(n-1)))
}
