//go:build !unix

package main

import "time"

// ownCPU returns 0, because the processor time is not known on this system. The tables then show 0.
func ownCPU() time.Duration { return 0 }
