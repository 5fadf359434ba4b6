package value

import (
	"math"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// boxed has the small numbers as values, each of which would otherwise cost an allocation. Replies
// of limiters have many of them, including -1.
var boxed = func() (b [129]glua.LValue) {
	for i := range b {
		b[i] = glua.LNumber(i - 1)
	}
	return b
}()

// Number returns n as a value, without an allocation if it is small.
func Number(n int64) glua.LValue {
	if n >= -1 && n < int64(len(boxed))-1 {
		return boxed[n+1]
	}
	return glua.LNumber(n)
}

// View returns b as a string without a copy. It is only for bytes that do not change while a script
// runs, and for strings that do not outlive the script.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns s as bytes, which must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// words is the layout of an interface value in the runtime.
type words struct{ table, data unsafe.Pointer }

var stringTable = func() unsafe.Pointer {
	v := glua.LValue(glua.LString(""))
	return (*words)(unsafe.Pointer(&v)).table
}()

// StringAt returns the string in a slot as a value, without an allocation. The value changes with
// the slot.
func StringAt(slot *glua.LString) glua.LValue {
	v := words{stringTable, unsafe.Pointer(slot)}
	return *(*glua.LValue)(unsafe.Pointer(&v))
}

// FromFloat returns a number as a value, without an allocation if it is a small integer.
func FromFloat(f float64) glua.LValue {
	if n := int64(f); float64(n) == f && n >= -1 && n < 128 && (n != 0 || !math.Signbit(f)) {
		return Number(n)
	}
	return glua.LNumber(f)
}
