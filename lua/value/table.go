package value

import glua "github.com/yuin/gopher-lua"

// ElementSize is the memory in bytes of an element in the array of a table.
const ElementSize = 16

// ArrayMax is the highest index that a table keeps in its array part. It is small, since setting
// this index in an empty table fills the whole array, 1 MiB (#501 of gopher-lua).
const ArrayMax = 1 << 16

// Length returns a border of t, as Lua's operator "#" does: 0, or an index whose element is not
// nil, while the element after it is nil. The interpreter's own length ends at the last index of
// the array part.
func Length(t *glua.LTable) int {
	n := t.Len()
	if n < ArrayMax-1 {
		return n
	}
	there := func(i int) bool { return t.RawGet(glua.LNumber(i)) != glua.LNil }
	low, high := n, n+1
	for there(high) {
		low, high = high, high*2
	}
	for low+1 < high {
		if middle := low + (high-low)/2; there(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
