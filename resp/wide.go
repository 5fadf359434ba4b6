package resp

import "sync"

// leastWide is how many arguments a slice has room for at least that Recycle keeps.
const leastWide = 4096

// wideArgs keeps slices for the arguments of commands of very many words, which would
// else be most of what the garbage collector has to go through.
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

// Recycle takes back what [Guard.Next] has returned, with whatever it had room for, once
// nobody uses the slice any more. It does nothing with those that are not wide.
func Recycle(args [][]byte) {
	args = args[:cap(args)]
	if len(args) < leastWide {
		return
	}
	clear(args) // what they point to is not kept, and is nothing to be gone through
	wideArgs.Put(&args)
}
