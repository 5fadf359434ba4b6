// Package process examines a server's process from outside: which process listens at an
// address, how much processor time it has used, and how much memory it takes. This works on
// Linux; on other systems every function returns [ErrUnknown].
package process

import (
	"errors"
	"time"
)

// ErrUnknown tells that there is no such process on this machine, or that this system does not
// provide the information.
var ErrUnknown = errors.New("the server's process is not known")

// Usage is the resource usage of a process.
type Usage struct {
	// CPU is its processor time in user and kernel mode, summed over its threads, in steps of a
	// clock tick (10 ms).
	CPU time.Duration
	// User is the part of CPU in user mode.
	User time.Duration
	// RSS is its resident memory in bytes.
	RSS int64
}
