// Package buffer has the memory for the input and output of connections.
// A [Buffer] comes from a pool, or from memory outside of Go's heap if the input is long. The package
// knows no connection.
package buffer

import (
	"math/bits"
	"sync"
)

// Buffers of 1, 2, 4 KiB … 1 MiB are lent from pools; larger ones are made for the
// occasion and left to the garbage collector, so that one huge command or reply
// does not stay paid for. Input beyond keptBuffer is outside of Go's heap where the
// system can do that: see getInput.
const (
	MinSize = 1 << 10
	maxSize = 1 << 20
	classes = 11

	// KeptSize is the largest that a connection keeps while there is nothing in it.
	KeptSize = 64 << 10
)

// Buffer is a box for a slice: putting a pointer into a pool allocates nothing.
type Buffer struct {
	B       []byte
	mapped  bool // b is not in Go's heap: see getInput
	used    int  // of a mapped buffer: up to where it has been written to since it was lent
	touched int  // of a mapped buffer: up to where it has ever been written to
}

var pools [classes]sync.Pool

// sizeClass returns the smallest class of at least n bytes.
func sizeClass(n int) int {
	if n <= MinSize {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(uint(MinSize)) + 1
}

// Get lends a buffer whose slice is n bytes or more long.
func Get(n int) *Buffer {
	class := sizeClass(n)
	if class >= classes {
		return &Buffer{B: make([]byte, n)}
	}
	if x := pools[class].Get(); x != nil {
		return x.(*Buffer)
	}
	return &Buffer{B: make([]byte, MinSize<<class)}
}

// Put takes a buffer back. Its slice may have been replaced by a grown one, unless it is mapped.
func Put(x *Buffer) {
	if x.mapped {
		longInputs.takeBack(x)
		return
	}
	n := cap(x.B)
	if n < MinSize || n > maxSize {
		return
	}
	// A grown slice need not be a power of two: it goes where it surely suffices.
	class := bits.Len(uint(n)) - bits.Len(uint(MinSize))
	x.B = x.B[:n]
	pools[class].Put(x)
}
