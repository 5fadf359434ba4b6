//go:build !linux

package yield

import "runtime"

// Thread yields to another goroutine that is ready, if there is one.
func Thread() { runtime.Gosched() }
