package concurrency

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/limit"
)

const (
	formList  = 1
	formIndex = 2
)

// The sizes at which a set changes its form. They differ so that a set does not change its form by
// turns.
const (
	listMost   = 64
	indexLeast = 32
)

// ErrCorrupt is the error of [Check] for bytes that are not a valid value.
var ErrCorrupt = errors.New("bytes are not a set of leases")

func getInstant(b []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(b)) }

func putInstant(b []byte, t limit.Instant) { binary.LittleEndian.PutUint64(b, uint64(t)) }

// sized returns size bytes of dst's memory, or of new memory if dst has less.
func sized(dst []byte, size int) []byte {
	if cap(dst) < size {
		return make([]byte, size)
	}
	return dst[:size]
}
