package stats

import "time"

// Traffic has the numbers of bytes that connections have transferred and have queued.
type Traffic struct {
	In, Out       int64 // bytes received and sent since the start
	Reads, Writes int64 // number of system calls that have received and sent bytes
	Pending       int64 // bytes of replies that were not sent yet, and of incomplete commands
	// InPerSecond and OutPerSecond are rates in bytes per second, averaged over about the last
	// second.
	InPerSecond, OutPerSecond float64
	// LargestInput and LargestOutput are the sizes, in bytes, of the largest input and output
	// buffer of one client in about the last eight seconds.
	LargestInput, LargestOutput int64
}

// Measures are further figures of the server process and its machine.
type Measures struct {
	SystemMemory int64         // memory of the machine in bytes; 0 if it is unknown
	StartMemory  int64         // memory of the process before it loaded anything, in bytes
	PeakMemory   int64         // the highest memory use of the process in bytes, sampled every second
	ExpireTime   time.Duration // time that the removal of expired keys without a command has taken
}

// Measured is an env.Process that also has these figures.
type Measured interface{ Measures() Measures }
