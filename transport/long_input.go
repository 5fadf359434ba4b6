package transport

import (
	"sync"
	"sync/atomic"
)

// Input beyond keptBuffer is kept in memory that is mapped outside of Go's heap, where the system can do
// that. Many clients that send long commands would make garbage faster than it is collected; this memory is
// free at once, grows without being copied, and takes no page for what has not arrived. Nothing may keep a
// part of it beyond a Feed.

// mostSpare is how many bytes of such memory are kept for the next long command, in all: to map them again
// costs as much as to receive them.
const mostSpare = 4 << 20

// longInputs has what is mapped.
var longInputs mappedMemory

// mappedMemory lends mapped buffers, from any goroutine.
type mappedMemory struct {
	bytes  atomic.Int64 // that its buffers have touched
	mu     sync.Mutex
	spares []*buffer // guarded by mu: the one used last is at the end
	kept   int       // guarded by mu: bytes that these have touched
	unused int       // guarded by mu: how many of the first have been spare since the last trim
}

// MappedInput is how many bytes the input of all transports of the process takes outside of Go's heap.
func MappedInput() int64 { return longInputs.bytes.Load() }

// TrimInput gives memory for long commands back that has not been used since the last call.
func TrimInput() { longInputs.trim() }

// getInput lends a buffer of n bytes or more for input that has to be kept.
func getInput(n int) *buffer {
	if n > keptBuffer {
		if x := longInputs.lend(n); x != nil {
			return x
		}
	}
	return getBuffer(n)
}

// lengthen returns a buffer of n bytes or more that begins with the bytes [r:w] of x, which is gone.
func (x *buffer) lengthen(r, w, n int) *buffer {
	if x.mapped {
		x.size(w)
		copy(x.b, x.b[r:w])
		if x.remap(n) {
			return x
		}
		r, w = 0, w-r
	}
	longer := getInput(n)
	copy(longer.b, x.b[r:w])
	putBuffer(x)
	return longer
}

// remap makes a mapped buffer n bytes long, and reports whether it could.
func (x *buffer) remap(n int) bool {
	b := remapMemory(x.b, n)
	if b != nil {
		x.b = b
	}
	return b != nil
}

// size is how many bytes of x are in use, which has been written to up to w.
func (x *buffer) size(w int) int {
	if !x.mapped {
		return len(x.b)
	}
	x.used = max(x.used, w)
	if x.used > x.touched {
		longInputs.bytes.Add(int64(x.used - x.touched))
		x.touched = x.used
	}
	return x.used
}

// giveBack is putBuffer for input that has been written up to w.
func (x *buffer) giveBack(w int) {
	x.size(w)
	putBuffer(x)
}

// lend returns a mapped buffer of n bytes or more; nil if the system has none.
func (m *mappedMemory) lend(n int) *buffer {
	if x := m.spare(); x != nil {
		if len(x.b) >= n || x.remap(n) {
			return x
		}
		m.free(x)
	}
	if b := mapMemory(max(n, maxBuffer)); b != nil {
		return &buffer{b: b, mapped: true}
	}
	return nil
}

// spare takes the buffer that was used last, if there is one.
func (m *mappedMemory) spare() *buffer {
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
func (m *mappedMemory) takeBack(x *buffer) {
	x.used = 0
	m.mu.Lock()
	keep := m.kept+x.touched <= mostSpare
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
	idle := append([]*buffer(nil), m.spares[:m.unused]...)
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
func (m *mappedMemory) free(x *buffer) {
	unmapMemory(x.b)
	m.bytes.Add(-int64(x.touched))
	*x = buffer{}
}
