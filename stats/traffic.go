package stats

import "time"

// Traffic is what connections have transferred, and what they have queued.
type Traffic struct {
	In, Out       int64 // bytes since the start
	Reads, Writes int64 // system calls that transferred bytes
	Pending       int64 // bytes of replies that were not sent yet, and of incomplete commands
	// InPerSecond and OutPerSecond are in bytes, averaged over about the last second.
	InPerSecond, OutPerSecond float64
	// LargestInput and LargestOutput are the largest buffers of one client in the last seconds, in
	// bytes.
	LargestInput, LargestOutput int64
}

// Measures are further figures of a process.
type Measures struct {
	SystemMemory int64         // of the machine in bytes, 0 if unknown
	StartMemory  int64         // memory of the process before it loaded anything, in bytes
	PeakMemory   int64         // the maximum, sampled every second
	ExpireTime   time.Duration // time that the removal of expired keys without a command took
}

// Measured is a process with these figures.
type Measured interface{ Measures() Measures }
