// Package buffer manages the memory for the input and output of connections. A [Buffer] comes from
// a pool, or from memory outside of Go's heap if it is for long input. The package does not depend
// on connections.
package buffer

import (
	"math/bits"
	"sync"
)

// Buffers of 1, 2, 4 KiB … 1 MiB come from pools. Larger ones are allocated and left to the garbage
// collector, so that memory for one huge command or reply is not kept. Input beyond KeptSize is
// outside of Go's heap if the system supports that: see [GetInput].
const (
	MinSize = 1 << 10
	maxSize = 1 << 20
	classes = 11

	// KeptSize is the maximum size of an empty buffer that a connection keeps.
	KeptSize = 64 << 10
)

// Buffer is a slice of bytes that comes from a pool. It is used by pointer, because putting a
// pointer into a pool allocates nothing.
type Buffer struct {
	B       []byte
	mapped  bool // B is memory outside of Go's heap: see [GetInput]
	used    int  // for a mapped buffer: the end of the bytes that were written since it was lent
	touched int  // for a mapped buffer: the end of all bytes that were ever written
}

var pools [classes]sync.Pool

// sizeClass returns the smallest class of at least n bytes. A result of classes means that n is
// above maxSize.
func sizeClass(n int) int {
	if n <= MinSize {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(uint(MinSize)) + 1
}

// Get returns a buffer with a slice of at least n bytes.
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

// Put returns a buffer to its pool. The slice x.B may have been replaced by a grown one, unless x
// is mapped. A slice that is too large for the pools is left to the garbage collector.
func Put(x *Buffer) {
	if x.mapped {
		longInputs.takeBack(x)
		return
	}
	n := cap(x.B)
	if n < MinSize || n > maxSize {
		return
	}
	// The size of a grown slice need not be a power of two, so it is rounded down to a class.
	class := bits.Len(uint(n)) - bits.Len(uint(MinSize))
	x.B = x.B[:n]
	pools[class].Put(x)
}
