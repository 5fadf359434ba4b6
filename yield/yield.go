// Package yield lets others run in the middle of long work.
//
// Who has a processor keeps it for milliseconds: the runtime takes it away from a goroutine after
// ten, and a Linux kernel from a thread after about three, whoever has been woken meanwhile. An
// event loop whose clients wait for less than one cannot wait for that.
package yield

import "runtime"

// Processor lets a goroutine run that is ready, and then does what [Thread] does. It returns at
// once, in one or two microseconds, if nobody waits. Work that may take long calls it between
// pieces of some ten microseconds, while it holds no lock that others want.
func Processor() {
	runtime.Gosched()
	Thread()
}
