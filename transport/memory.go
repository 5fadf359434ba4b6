package transport

import "github.com/cellserver/cellserver/transport/internal/buffer"

// MappedInput returns how many bytes of memory outside of Go's heap the input of all transports of
// the process takes, including spare memory: see [TrimInput].
func MappedInput() int64 { return buffer.Mapped() }

// TrimInput releases the spare memory for long input, outside of Go's heap, that has not been used
// since the previous call.
func TrimInput() { buffer.Trim() }
