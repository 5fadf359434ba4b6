//go:build !unix

package server

import (
	"net"
	"time"
)

// residentSet returns 0, because there is no portable way to read it: Memory then returns the Go
// heap.
func residentSet() int64 { return 0 }

func systemMemory() int64 { return 0 }

func cpuTime() (sys, user time.Duration) { return 0, 0 }

func raiseFiles(want uint64) uint64 { return want }

func setBacklog(*net.TCPListener, int) error { return nil }

func checkListens(int) error { return nil }

func withUmask(f func() error) error { return f() }
