//go:build amd64 || arm64

package dense

import "unsafe"

// touch asks the processor for the cache lines of all addresses. It waits for none
// of them, which no load that Go can express does, and an address that is not mapped,
// nil among them, is ignored.
//
//go:noescape
func touch(at []unsafe.Pointer)
