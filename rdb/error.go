package rdb

import (
	"errors"
	"fmt"
)

// These are the errors of a [Reader], for errors.Is. For an input that ends too early the error is
// io.ErrUnexpectedEOF. Other errors of the input, and errors of the [Visitor], are wrapped. The
// text of each error has the offset in the input at which it occurred.
var (
	// ErrCorrupt means that the input has bytes that no server writes.
	ErrCorrupt = errors.New("corrupt")
	// ErrChecksum means that the structure of the input is valid, but the CRC64 does not match.
	ErrChecksum = errors.New("wrong checksum")
	// ErrUnknown means that the input has an unknown type or opcode. Its length is unknown, too, so
	// nothing after it can be read.
	ErrUnknown = errors.New("unknown")
	// ErrVersion means that the input is not an RDB, or has an unknown version.
	ErrVersion = errors.New("version not supported")
	// ErrLimit means that the data exceeds [Limits].
	ErrLimit = errors.New("limit exceeded")
)

// corrupt returns an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
