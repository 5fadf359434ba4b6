package lua

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// boxed has the small numbers as values, which cost an allocation each otherwise.
// Replies of limiters are full of them, -1 included.
var boxed = func() (b [129]glua.LValue) {
	for i := range b {
		b[i] = glua.LNumber(i - 1)
	}
	return b
}()

func number(n int64) glua.LValue {
	if n >= -1 && n < int64(len(boxed))-1 {
		return boxed[n+1]
	}
	return glua.LNumber(n)
}

// view is b as a string without a copy. It is only for bytes that stay as they
// are while a script runs, and for strings that do not outlive it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf is s as bytes that nobody changes.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// words are an interface value as the runtime lays it out.
type words struct{ table, data unsafe.Pointer }

var stringTable = func() unsafe.Pointer {
	v := glua.LValue(glua.LString(""))
	return (*words)(unsafe.Pointer(&v)).table
}()

// stringAt is the string in a slot as a value, without an allocation. It changes
// with the slot.
func stringAt(slot *glua.LString) glua.LValue {
	v := words{stringTable, unsafe.Pointer(slot)}
	return *(*glua.LValue)(unsafe.Pointer(&v))
}
