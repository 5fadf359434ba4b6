// Package process examines a server's process from outside. It finds the process that listens at an
// address, and reads the processor time and the memory of a process. This works on Linux; on other
// systems [Find], [Of] and [Peak] return [ErrUnknown]. [This] describes the machine.
package process

import (
	"errors"
	"time"
)

// ErrUnknown says that there is no such process on this machine, or that this system does not
// provide the information.
var ErrUnknown = errors.New("the server's process is not known")

// Usage is the resource usage of a process.
type Usage struct {
	// CPU is the processor time of the process in user and kernel mode, summed over its threads, in
	// steps of a clock tick (10 ms).
	CPU time.Duration
	// User is the part of CPU in user mode.
	User time.Duration
	// RSS is the resident memory of the process in bytes.
	RSS int64
}
