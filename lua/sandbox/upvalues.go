package sandbox

import (
	"reflect"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// The interpreter closes the wrong captured variables when an error is caught (#448 of gopher-lua).
// Without an error function it closes the variables of every function on the stack, so that an
// outer function and its closures no longer share a local. With an error function it closes none,
// so that a closure that survives reads registers which other functions use by then. It should
// close those that were captured since the protected call began. The interpreter exports no way to
// do that, so this package accesses three of its fields by their offsets. A test compares the types
// of the fields with those that are assumed here.
var (
	openUpvalues = offsetOf(reflect.TypeFor[glua.LState](), "uvcache")
	hasErrorFunc = offsetOf(reflect.TypeFor[glua.LState](), "hasErrorFunc")
	nextUpvalue  = offsetOf(reflect.TypeFor[glua.Upvalue](), "next")
)

func offsetOf(t reflect.Type, name string) uintptr {
	field, ok := t.FieldByName(name)
	if !ok {
		panic("lua: gopher-lua has no field " + t.Name() + "." + name)
	}
	return field.Offset
}

// openList returns the list of the variables on the stack of l that closures have captured. The
// lowest on the stack comes first.
func openList(l *glua.LState) **glua.Upvalue {
	return (**glua.Upvalue)(unsafe.Add(unsafe.Pointer(l), openUpvalues))
}

func after(u *glua.Upvalue) **glua.Upvalue {
	return (**glua.Upvalue)(unsafe.Add(unsafe.Pointer(u), nextUpvalue))
}

// errorFunc returns the flag hasErrorFunc of l. If it is true, l leaves captured variables open
// when an error is raised.
func errorFunc(l *glua.LState) *bool {
	return (*bool)(unsafe.Add(unsafe.Pointer(l), hasErrorFunc))
}

// highestUpvalue returns the captured variable that is the highest on the stack of l, or nil if
// there is none.
func highestUpvalue(l *glua.LState) *glua.Upvalue {
	var last *glua.Upvalue
	for u := *openList(l); u != nil; u = *after(u) {
		last = u
	}
	return last
}

// closeUpvaluesAfter closes the captured variables above last on the stack of l, or all if last is
// nil. The registers of the variables must still exist.
func closeUpvaluesAfter(l *glua.LState, last *glua.Upvalue) {
	link := openList(l)
	if last != nil {
		link = after(last)
	}
	for u := *link; u != nil; {
		next := *after(u)
		u.Close()
		if u.Value() == nil {
			// The register does not exist any more, and a Lua value must not be nil in Go.
			u.SetValue(glua.LNil)
		}
		*after(u) = nil
		u = next
	}
	*link = nil
}
