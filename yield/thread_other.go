//go:build !linux

package yield

import "runtime"

// Thread yields to another goroutine that is ready to run. It returns at once if there is none.
func Thread() { runtime.Gosched() }
