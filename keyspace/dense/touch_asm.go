//go:build amd64 || arm64

package dense

import "unsafe"

// touch asks the processor to prefetch the cache lines of all addresses. Unlike a load in Go, it
// does not wait for them. An address that is not mapped, such as nil, is ignored.
//
//go:noescape
func touch(at []unsafe.Pointer)
