// Package yield lets other goroutines and threads run in the middle of long work.
//
// A goroutine keeps its P for up to 10 ms, even if another goroutine is ready. On Linux a thread
// keeps its processor for about 3 ms, even if another thread is ready. The clients of an event loop
// expect replies within less than 1 ms, so an event loop cannot wait for the end of such a time
// slice.
package yield

import "runtime"

// Processor lets other goroutines run that are ready, and then calls [Thread]. If there are none,
// Processor returns within one or two microseconds. Code with long work calls it after every few
// tens of microseconds of work, while it holds no lock that other goroutines need.
func Processor() {
	runtime.Gosched()
	Thread()
}
