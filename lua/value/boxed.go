package value

import (
	"math"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// boxed has the numbers from -1 to 127 as values of the interpreter. To make such a value at run
// time would cost an allocation, and replies of limiters have many of these numbers.
var boxed = func() (b [129]glua.LValue) {
	for i := range b {
		b[i] = glua.LNumber(i - 1)
	}
	return b
}()

// Number returns n as a value of the interpreter. It makes no allocation if n is from -1 to 127.
func Number(n int64) glua.LValue {
	if n >= -1 && n < int64(len(boxed))-1 {
		return boxed[n+1]
	}
	return glua.LNumber(n)
}

// View returns b as a string that shares its bytes. The bytes must not change while the string is
// in use.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns the bytes of s without a copy. They must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// words is the layout in memory of an interface value.
type words struct{ table, data unsafe.Pointer }

var stringTable = func() unsafe.Pointer {
	v := glua.LValue(glua.LString(""))
	return (*words)(unsafe.Pointer(&v)).table
}()

// StringAt returns the string in slot as a value of the interpreter, without an allocation. The
// value refers to slot: it changes when slot is set.
func StringAt(slot *glua.LString) glua.LValue {
	v := words{stringTable, unsafe.Pointer(slot)}
	return *(*glua.LValue)(unsafe.Pointer(&v))
}

// FromFloat returns f as a value of the interpreter. It makes no allocation if f is an integer from
// -1 to 127.
func FromFloat(f float64) glua.LValue {
	if n := int64(f); float64(n) == f && n >= -1 && n < 128 && (n != 0 || !math.Signbit(f)) {
		return Number(n)
	}
	return glua.LNumber(f)
}
