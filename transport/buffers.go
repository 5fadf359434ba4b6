package transport

import (
	"math/bits"
	"sync"
)

// Buffers of 1, 2, 4 KiB … 1 MiB are lent from pools; larger ones are made for the
// occasion and left to the garbage collector, so that one huge command or reply
// does not stay paid for. Input beyond keptBuffer is outside of Go's heap where the
// system can do that: see getInput.
const (
	minBuffer   = 1 << 10
	maxBuffer   = 1 << 20
	bufferSizes = 11

	// keptBuffer is the largest that a connection keeps while there is nothing in it.
	keptBuffer = 64 << 10
)

// buffer is a box for a slice: putting a pointer into a pool allocates nothing.
type buffer struct {
	b       []byte
	mapped  bool // b is not in Go's heap: see getInput
	used    int  // of a mapped buffer: up to where it has been written to since it was lent
	touched int  // of a mapped buffer: up to where it has ever been written to
}

var bufferPools [bufferSizes]sync.Pool

// sizeClass returns the smallest class of at least n bytes.
func sizeClass(n int) int {
	if n <= minBuffer {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(uint(minBuffer)) + 1
}

// getBuffer lends a buffer whose slice is n bytes or more long.
func getBuffer(n int) *buffer {
	class := sizeClass(n)
	if class >= bufferSizes {
		return &buffer{b: make([]byte, n)}
	}
	if x := bufferPools[class].Get(); x != nil {
		return x.(*buffer)
	}
	return &buffer{b: make([]byte, minBuffer<<class)}
}

// putBuffer takes a buffer back. Its slice may have been replaced by a grown one, unless it is mapped.
func putBuffer(x *buffer) {
	if x.mapped {
		longInputs.takeBack(x)
		return
	}
	n := cap(x.b)
	if n < minBuffer || n > maxBuffer {
		return
	}
	// A grown slice need not be a power of two: it goes where it surely suffices.
	class := bits.Len(uint(n)) - bits.Len(uint(minBuffer))
	x.b = x.b[:n]
	bufferPools[class].Put(x)
}
