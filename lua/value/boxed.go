package value

import (
	"math"
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

// Number is n as a value, without an allocation if it is small.
func Number(n int64) glua.LValue {
	if n >= -1 && n < int64(len(boxed))-1 {
		return boxed[n+1]
	}
	return glua.LNumber(n)
}

// View is b as a string without a copy. It is only for bytes that stay as they
// are while a script runs, and for strings that do not outlive it.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes is s as bytes that nobody changes.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// words are an interface value as the runtime lays it out.
type words struct{ table, data unsafe.Pointer }

var stringTable = func() unsafe.Pointer {
	v := glua.LValue(glua.LString(""))
	return (*words)(unsafe.Pointer(&v)).table
}()

// StringAt is the string in a slot as a value, without an allocation. It changes
// with the slot.
func StringAt(slot *glua.LString) glua.LValue {
	v := words{stringTable, unsafe.Pointer(slot)}
	return *(*glua.LValue)(unsafe.Pointer(&v))
}

// FromFloat boxes a number, without allocating if it is small and whole.
func FromFloat(f float64) glua.LValue {
	if n := int64(f); float64(n) == f && n >= -1 && n < 128 && (n != 0 || !math.Signbit(f)) {
		return Number(n)
	}
	return glua.LNumber(f)
}
