package rdb

import (
	"errors"
	"fmt"
)

// What an error of a [Reader] may be, for errors.Is. Input that ends too early is
// io.ErrUnexpectedEOF, and other errors of the input and of the [Visitor] are wrapped as
// they are. All say at which byte it was.
var (
	// ErrCorrupt: bytes that no server writes.
	ErrCorrupt = errors.New("corrupt")
	// ErrChecksum: the structure is whole, but its CRC64 is another.
	ErrChecksum = errors.New("wrong checksum")
	// ErrUnknown: a type or an opcode whose length is not known, so that nothing after it
	// can be read.
	ErrUnknown = errors.New("unknown")
	// ErrVersion: no RDB, or a version that is not known.
	ErrVersion = errors.New("version not supported")
	// ErrLimit: more than [Limits] allow.
	ErrLimit = errors.New("limit exceeded")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
