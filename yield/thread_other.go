//go:build !linux

package yield

import "runtime"

// Thread lets another goroutine run, if one waits.
func Thread() { runtime.Gosched() }
