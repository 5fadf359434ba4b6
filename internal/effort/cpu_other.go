//go:build !unix

package effort

import "time"

// begun is the instant from which CPU counts.
var begun = time.Now()

// CPU returns the time since this process was started, because this system does not provide
// processor time.
func CPU() time.Duration { return time.Since(begun) }
