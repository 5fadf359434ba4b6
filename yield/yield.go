// Package yield lets other goroutines and threads run in the middle of long work.
//
// A goroutine keeps its P for up to 10 ms, and a thread its processor on Linux for about three,
// even if another one is ready. The clients of an event loop wait for less than one, so the event
// loop cannot wait for the end of such a time slice.
package yield

import "runtime"

// Processor lets another goroutine run that is ready, and then calls [Thread]. It returns at once,
// in one or two microseconds, if none is ready. Long work calls it between pieces of some ten
// microseconds, while it holds no lock that other goroutines need.
func Processor() {
	runtime.Gosched()
	Thread()
}
