package buffer

import (
	"sync"
	"sync/atomic"
)

// Input beyond keptBuffer is kept in memory that is mapped outside of Go's heap, where the system can do
// that. Many clients that send long commands would make garbage faster than it is collected; this memory is
// free at once, grows without being copied, and takes no page for what has not arrived. Nothing may keep a
// part of it beyond a Feed.

// maxSpare is how many bytes of such memory are kept for the next long command, in all: to map them again
// costs as much as to receive them.
const maxSpare = 4 << 20

// longInputs has what is mapped.
var longInputs mappedMemory

// mappedMemory lends mapped buffers, from any goroutine.
type mappedMemory struct {
	bytes  atomic.Int64 // that its buffers have touched
	mu     sync.Mutex
	spares []*Buffer // guarded by mu: the one used last is at the end
	kept   int       // guarded by mu: bytes that these have touched
	unused int       // guarded by mu: how many of the first have been spare since the last trim
}

// Mapped is how many bytes the input of all transports of the process takes outside of Go's heap.
func Mapped() int64 { return longInputs.bytes.Load() }

// Trim gives memory for long commands back that has not been used since the last call.
func Trim() { longInputs.trim() }

// GetInput lends a buffer of n bytes or more for input that has to be kept.
func GetInput(n int) *Buffer {
	if n > KeptSize {
		if x := longInputs.lend(n); x != nil {
			return x
		}
	}
	return Get(n)
}

// Lengthen returns a buffer of n bytes or more that begins with the bytes [r:w] of x, which is gone.
func (x *Buffer) Lengthen(r, w, n int) *Buffer {
	if x.mapped {
		x.Size(w)
		copy(x.B, x.B[r:w])
		if x.remap(n) {
			return x
		}
		r, w = 0, w-r
	}
	longer := GetInput(n)
	copy(longer.B, x.B[r:w])
	Put(x)
	return longer
}

// remap makes a mapped buffer n bytes long, and reports whether it could.
func (x *Buffer) remap(n int) bool {
	b := remapMemory(x.B, n)
	if b != nil {
		x.B = b
	}
	return b != nil
}

// Size is how many bytes of x are in use, which has been written to up to w.
func (x *Buffer) Size(w int) int {
	if !x.mapped {
		return len(x.B)
	}
	x.used = max(x.used, w)
	if x.used > x.touched {
		longInputs.bytes.Add(int64(x.used - x.touched))
		x.touched = x.used
	}
	return x.used
}

// GiveBack is putBuffer for input that has been written up to w.
func (x *Buffer) GiveBack(w int) {
	x.Size(w)
	Put(x)
}

// lend returns a mapped buffer of n bytes or more; nil if the system has none.
func (m *mappedMemory) lend(n int) *Buffer {
	if x := m.spare(); x != nil {
		if len(x.B) >= n || x.remap(n) {
			return x
		}
		m.free(x)
	}
	if b := mapMemory(max(n, maxSize)); b != nil {
		return &Buffer{B: b, mapped: true}
	}
	return nil
}

// spare takes the buffer that was used last, if there is one.
func (m *mappedMemory) spare() *Buffer {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.spares) - 1
	if last < 0 {
		return nil
	}
	x := m.spares[last]
	m.spares[last] = nil
	m.spares = m.spares[:last]
	m.kept -= x.touched
	m.unused = min(m.unused, last)
	return x
}

// takeBack takes a mapped buffer that is not used any more.
func (m *mappedMemory) takeBack(x *Buffer) {
	x.used = 0
	m.mu.Lock()
	keep := m.kept+x.touched <= maxSpare
	if keep {
		m.kept += x.touched
		m.spares = append(m.spares, x)
	}
	m.mu.Unlock()
	if !keep {
		m.free(x)
	}
}

// trim frees the buffers that have been spare since the last call.
func (m *mappedMemory) trim() {
	m.mu.Lock()
	idle := append([]*Buffer(nil), m.spares[:m.unused]...)
	for _, x := range idle {
		m.kept -= x.touched
	}
	m.spares = append(m.spares[:0], m.spares[m.unused:]...)
	clear(m.spares[len(m.spares):cap(m.spares)])
	m.unused = len(m.spares)
	m.mu.Unlock()
	for _, x := range idle {
		m.free(x)
	}
}

// free gives the memory of x back.
func (m *mappedMemory) free(x *Buffer) {
	unmapMemory(x.B)
	m.bytes.Add(-int64(x.touched))
	*x = Buffer{}
}
