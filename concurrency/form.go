package concurrency

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/limit"
)

// These are the forms, of which the first byte of a value is one. The first two belong to the mode
// Leases, the others to the mode Places. Lists are odd.
const (
	formList        = 1
	formIndex       = 2
	formPlacesList  = 3
	formPlacesIndex = 4
)

// A set becomes an index above listMost members, and a list again at indexLeast. These differ so
// that a set does not change its form with every call.
const (
	listMost   = 64
	indexLeast = 32
)

// ErrCorrupt means that bytes are not a valid value or delta.
var ErrCorrupt = errors.New("bytes are not a set of leases")

// isList reports whether value is a list. value must not be empty.
func isList(value []byte) bool { return value[0]&1 == formList }

// hasPlaces reports whether value, which may be empty, has a form of the mode Places.
func hasPlaces(value []byte) bool { return len(value) > 0 && value[0] >= formPlacesList }

// modeOf returns the mode of value, which must not be empty.
func modeOf(value []byte) Mode {
	if hasPlaces(value) {
		return Places
	}
	return Leases
}

// listOf returns the first byte of a list in mode m, and the number of bytes before each name.
func listOf(m Mode) (form byte, header int) {
	if m == Places {
		return formPlacesList, placesHeader
	}
	return formList, entryHeader
}

func getInstant(b []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(b)) }

func putInstant(b []byte, t limit.Instant) { binary.LittleEndian.PutUint64(b, uint64(t)) }

// sized returns size bytes of the memory of dst, or new memory if the capacity of dst is smaller.
func sized(dst []byte, size int) []byte {
	if cap(dst) < size {
		return make([]byte, size)
	}
	return dst[:size]
}
