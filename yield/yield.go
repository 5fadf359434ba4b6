// Package yield lets others run in the middle of long work.
//
// A goroutine keeps its P for up to 10 ms, and a thread its processor on Linux for about three, even if
// another one is ready. The clients of an event loop wait for less than one, so it cannot wait for that.
package yield

import "runtime"

// Processor lets a goroutine run that is ready, and then does what [Thread] does. It returns at
// once, in one or two microseconds, if nobody waits. Work that may take long calls it between
// pieces of some ten microseconds, while it holds no lock that others want.
func Processor() {
	runtime.Gosched()
	Thread()
}
