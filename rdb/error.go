package rdb

import (
	"errors"
	"fmt"
)

// The errors of a [Reader], for errors.Is. Input that ends too early is io.ErrUnexpectedEOF. Other
// errors of the input, and those of the [Visitor], are wrapped. All have the offset of the byte at
// which they occurred.
var (
	// ErrCorrupt: bytes that no server writes.
	ErrCorrupt = errors.New("corrupt")
	// ErrChecksum: the structure is valid, but the CRC64 does not match.
	ErrChecksum = errors.New("wrong checksum")
	// ErrUnknown: a type or an opcode of unknown length, so that nothing after it can be read.
	ErrUnknown = errors.New("unknown")
	// ErrVersion: the input is not an RDB, or has an unknown version.
	ErrVersion = errors.New("version not supported")
	// ErrLimit: the data exceeds [Limits].
	ErrLimit = errors.New("limit exceeded")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
