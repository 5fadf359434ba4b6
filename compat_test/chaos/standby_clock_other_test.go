//go:build !unix

package chaos_test

import "time"

// monotonic returns nanoseconds of a clock that only steps of the system's time disturb. Where this
// is compiled, no sentinel runs.
func monotonic() int64 { return time.Now().UnixNano() }
