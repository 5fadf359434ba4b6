//go:build !unix

package effort

import "time"

// begun is the start of the time that CPU returns.
var begun = time.Now()

// CPU returns how long this process has been running, because processor time is not available on
// this system.
func CPU() time.Duration { return time.Since(begun) }
