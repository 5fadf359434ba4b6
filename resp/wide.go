package resp

import "sync"

// leastWide is the minimum capacity of a slice of arguments that Recycle keeps.
const leastWide = 4096

// wideArgs keeps slices for commands of very many arguments, which would otherwise be most of the
// garbage collector's work.
var wideArgs sync.Pool // of *[][]byte

// roomFor returns an empty slice with room for n arguments.
func roomFor(n int) [][]byte {
	if n >= leastWide {
		if args, _ := wideArgs.Get().(*[][]byte); args != nil && cap(*args) >= n {
			return (*args)[:0]
		}
	}
	return make([][]byte, 0, n)
}

// Recycle takes back a slice that [Guard.Next] has returned, with its whole capacity, once it is no
// longer used. It ignores slices that are not wide.
func Recycle(args [][]byte) {
	args = args[:cap(args)]
	if len(args) < leastWide {
		return
	}
	clear(args) // neither kept alive nor scanned
	wideArgs.Put(&args)
}
