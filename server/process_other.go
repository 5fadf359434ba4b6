//go:build !unix

package server

import (
	"net"
	"time"
)

// residentSet returns 0, which means that the resident set size is unknown: there is no portable
// way to read it.
func residentSet() int64 { return 0 }

func systemMemory() int64 { return 0 }

func cpuTime() (sys, user time.Duration) { return 0, 0 }

func raiseFiles(want uint64) uint64 { return want }

func setBacklog(*net.TCPListener, int) error { return nil }

func checkListens(int) error { return nil }

func withUmask(f func() error) error { return f() }
