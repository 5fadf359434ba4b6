//go:build !amd64 && !arm64

package dense

import "unsafe"

// touch does nothing on processors for which there is no assembly here.
func touch([]unsafe.Pointer) {}
