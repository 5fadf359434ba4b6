//go:build !unix

package effort

import "time"

// begun is what CPU counts from.
var begun = time.Now()

// CPU is the time that this process has run for: there is no other here.
func CPU() time.Duration { return time.Since(begun) }
