package transport

import "github.com/cellserver/cellserver/transport/internal/buffer"

// MappedInput is how many bytes the input of all transports of the process takes outside of Go's heap.
func MappedInput() int64 { return buffer.Mapped() }

// TrimInput gives memory for long commands back that has not been used since the last call.
func TrimInput() { buffer.Trim() }
