//go:build !linux

package world

import "runtime"

// GiveWay lets another goroutine run, if one waits.
func GiveWay() { runtime.Gosched() }
