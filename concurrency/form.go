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

// A set becomes an index above listMost members, and a list again at indexLeast. These differ so
// that a set does not change its form with every call.
const (
	listMost   = 64
	indexLeast = 32
)

// ErrCorrupt means that bytes are not a valid value or delta.
var ErrCorrupt = errors.New("bytes are not a set of leases")

func getInstant(b []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(b)) }

func putInstant(b []byte, t limit.Instant) { binary.LittleEndian.PutUint64(b, uint64(t)) }

// sized returns size bytes of the memory of dst, or new memory if the capacity of dst is smaller.
func sized(dst []byte, size int) []byte {
	if cap(dst) < size {
		return make([]byte, size)
	}
	return dst[:size]
}
