package slidingwindow

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/limit"
)

// These are the sizes of a stored value and of its parts, in bytes. Every value is a sequence of
// little-endian words of eight bytes:
//
//	COUNTER  start, window, current count, previous count
//	FIXED    start, window, count
//	LOG      window, total before the first entry, position of the first entry
//	         and number of entries (32 bits each), then a ring of
//	         instant, running total
//	BUCKETS  start, window, current slot, then m counts
//	CALENDAR start, window, count, then the rule: the unit (a byte), FROM (two bytes,
//	         little-endian) and the name of the zone, which is empty for UTC
//
// Instants are Unix nanoseconds. start is the start of the window in which the value was last
// stored. window is its length, so the end of a window of CALENDAR is stored, too: it holds although
// the next window may be longer or shorter.
const (
	word         = 8
	counterSize  = 4 * word
	fixedSize    = 3 * word
	logHeader    = 3 * word
	entrySize    = 2 * word
	bucketHeader = 3 * word
	// ruleSize is the size of the rule of CALENDAR without the name of the zone.
	ruleSize = 3
	// smallestRing and largestRing are the bounds of the capacity of a LOG's ring, in entries.
	smallestRing = 2
	largestRing  = 1 << 30
)

// ErrCorrupt means that bytes are not a valid value or delta.
var ErrCorrupt = errors.New("bytes are not a sliding window")

func entries(ring []byte) int { return len(ring) / entrySize }

// entry is an entry of a LOG: an instant, and the total of all units up to and including that
// instant.
type entry struct {
	at    limit.Instant
	total uint64
}

func logEntry(ring []byte, i int) entry {
	return entry{at: limit.Instant(getInt(ring, 2*i)), total: uint64(getInt(ring, 2*i+1))}
}

func putEntry(ring []byte, i int, e entry) {
	putInt(ring, 2*i, int64(e.at))
	putInt(ring, 2*i+1, int64(e.total))
}

func slotCount(ring []byte, i int) int64 { return getInt(ring, i) }

func getInt(b []byte, i int) int64 { return int64(binary.LittleEndian.Uint64(b[i*word:])) }

func putInt(b []byte, i int, n int64) { binary.LittleEndian.PutUint64(b[i*word:], uint64(n)) }
