package resp

import "sync"

// leastWide is the minimum capacity, in arguments, of a slice that Recycle keeps.
const leastWide = 4096

// wideArgs keeps slices for commands with very many arguments. Without the pool, allocating such
// slices would cause most of the garbage collector's work.
var wideArgs sync.Pool // values of type *[][]byte

// roomFor returns an empty slice with room for n arguments. For leastWide arguments or more it
// takes a slice from the pool if there is a large enough one.
func roomFor(n int) [][]byte {
	if n >= leastWide {
		if args, _ := wideArgs.Get().(*[][]byte); args != nil && cap(*args) >= n {
			return (*args)[:0]
		}
	}
	return make([][]byte, 0, n)
}

// Recycle takes back args, a slice that [Guard.Next] has returned, for a later command. The caller
// must not use args afterwards. Recycle ignores a slice with a capacity of less than 4096.
func Recycle(args [][]byte) {
	args = args[:cap(args)]
	if len(args) < leastWide {
		return
	}
	clear(args) // after clear, the garbage collector neither keeps nor scans the arguments
	wideArgs.Put(&args)
}
