package sandbox

import (
	"reflect"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// The interpreter closes the wrong variables when an error is caught (#448 of gopher-lua): those of
// every function on the stack if no error function is set, so that an outer
// function and its closures part ways over a local that they share, and none at
// all if one is set, so that a closure that survives reads registers that others
// use by then. Right is: those that were captured since the protected call began.
// There is no exported way to say so, hence these three fields. A test compares
// their types with what is assumed here.
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

// openList is the list of variables on the stack of l that closures have
// captured, lowest first.
func openList(l *glua.LState) **glua.Upvalue {
	return (**glua.Upvalue)(unsafe.Add(unsafe.Pointer(l), openUpvalues))
}

func after(u *glua.Upvalue) **glua.Upvalue {
	return (**glua.Upvalue)(unsafe.Add(unsafe.Pointer(u), nextUpvalue))
}

// errorFunc is whether l leaves captured variables alone when it raises.
func errorFunc(l *glua.LState) *bool {
	return (*bool)(unsafe.Add(unsafe.Pointer(l), hasErrorFunc))
}

// highestUpvalue returns the last captured variable, or nil.
func highestUpvalue(l *glua.LState) *glua.Upvalue {
	var last *glua.Upvalue
	for u := *openList(l); u != nil; u = *after(u) {
		last = u
	}
	return last
}

// closeUpvaluesAfter closes what was captured since last was the highest. The
// registers must still be there.
func closeUpvaluesAfter(l *glua.LState, last *glua.Upvalue) {
	link := openList(l)
	if last != nil {
		link = after(last)
	}
	for u := *link; u != nil; {
		next := *after(u)
		u.Close()
		if u.Value() == nil {
			// A register that is gone. No value of Lua is nil to Go.
			u.SetValue(glua.LNil)
		}
		*after(u) = nil
		u = next
	}
	*link = nil
}
