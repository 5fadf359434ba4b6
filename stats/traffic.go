package stats

import "time"

// Traffic is what connections have moved and keep.
type Traffic struct {
	In, Out       int64 // bytes since the start
	Reads, Writes int64 // calls of the system that moved some
	Pending       int64 // bytes of replies to be sent, and of input that is no whole command yet
	// InPerSecond and OutPerSecond are bytes, over the last second or so.
	InPerSecond, OutPerSecond float64
	// LargestInput and LargestOutput are the most that one client has kept during the last
	// seconds, in bytes.
	LargestInput, LargestOutput int64
}

// Measures is what a process knows of itself beside that.
type Measures struct {
	SystemMemory int64         // of the machine in bytes, 0 where that is not known
	StartMemory  int64         // what the process took before it loaded anything, in bytes
	PeakMemory   int64         // the most it took, looked at every second
	ExpireTime   time.Duration // what the removal of expired keys took, as no command asked for them
}

// Measured is a process that knows them.
type Measured interface{ Measures() Measures }
