//go:build amd64 || arm64

package dense

import "unsafe"

// touch asks the processor to prefetch the cache lines of all addresses. It waits for none of them,
// which no load in Go can do, and an address that is not mapped, such as nil, is ignored.
//
//go:noescape
func touch(at []unsafe.Pointer)
