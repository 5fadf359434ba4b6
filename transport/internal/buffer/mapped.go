package buffer

import (
	"sync"
	"sync/atomic"
)

// Input beyond KeptSize is in memory that is mapped outside of Go's heap, if the system supports
// that. Many clients that send long commands would produce garbage faster than it is collected.
// Mapped memory is free at once, grows without being copied, and takes no page for bytes that have
// not arrived. No code may keep a part of it beyond a Feed.

// maxSpare is the maximum number of bytes of unused mapped memory that the process keeps for the
// next long commands, since mapping memory again costs as much as receiving the bytes.
const maxSpare = 4 << 20

var longInputs mappedMemory

// mappedMemory is a pool of mapped buffers. It is safe for concurrent use.
type mappedMemory struct {
	bytes  atomic.Int64 // number of bytes that the buffers have touched
	mu     sync.Mutex
	spares []*Buffer // the unused buffers, the last used one at the end; guarded by mu
	kept   int       // number of bytes that the buffers in spares have touched; guarded by mu
	unused int       // number of buffers at the beginning of spares that were not used since the last trim; guarded by mu
}

// Mapped returns how many bytes of memory outside of Go's heap the input of all transports of the
// process takes, including the spare buffers.
func Mapped() int64 { return longInputs.bytes.Load() }

// Trim releases memory for long commands that has not been used since the last call.
func Trim() { longInputs.trim() }

// GetInput returns a buffer of at least n bytes for input that has to be kept.
func GetInput(n int) *Buffer {
	if n > KeptSize {
		if x := longInputs.lend(n); x != nil {
			return x
		}
	}
	return Get(n)
}

// Lengthen returns a buffer of at least n bytes that begins with the bytes [r:w] of x. The caller
// must not use x any more.
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

// remap makes a mapped buffer n bytes long, and reports whether that succeeded. On failure x stays
// as it is.
func (x *Buffer) remap(n int) bool {
	b := remapMemory(x.B, n)
	if b != nil {
		x.B = b
	}
	return b != nil
}

// Size returns how many bytes of memory x uses. w is the end of the bytes that have been written to
// x. For a mapped buffer Size also updates the number that [Mapped] returns.
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

// GiveBack does what [Put] does, for input that has been written up to the offset w.
func (x *Buffer) GiveBack(w int) {
	x.Size(w)
	Put(x)
}

// lend returns a mapped buffer of at least n bytes, nil if the system has none.
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

// spare removes and returns the spare buffer that was used last, nil if there is none.
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

// takeBack keeps a mapped buffer as a spare, or frees it if the spares would then have more than
// maxSpare bytes.
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

// trim frees the spares that have not been used since the last call.
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

// free unmaps the memory of x, and does not count it any more.
func (m *mappedMemory) free(x *Buffer) {
	unmapMemory(x.B)
	m.bytes.Add(-int64(x.touched))
	*x = Buffer{}
}
