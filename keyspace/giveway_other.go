//go:build !linux

package keyspace

import "runtime"

// giveWay lets another goroutine run, if one waits.
func giveWay() { runtime.Gosched() }
