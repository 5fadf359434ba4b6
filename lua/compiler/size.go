package compiler

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// trim gives back the room that the compiler has left for more instructions in each
// function: 12 KiB of it.
func trim(p *glua.FunctionProto) {
	p.Code = exact(p.Code)
	p.DbgSourcePositions = exact(p.DbgSourcePositions)
	p.Constants = exact(p.Constants)
	p.DbgLocals = exact(p.DbgLocals)
	p.DbgCalls = exact(p.DbgCalls)
	p.DbgUpvalues = exact(p.DbgUpvalues)
	p.FunctionPrototypes = exact(p.FunctionPrototypes)
	for _, inner := range p.FunctionPrototypes {
		trim(inner)
	}
}

// exact copies s without the room behind it. Of one that is empty nothing is kept.
func exact[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(make([]T, 0, len(s)), s...)
}

// stringSize is what a short string takes beside its bytes: its header, and that of the
// value that it is.
const stringSize = 2 * int(unsafe.Sizeof(""))

// roomForStrings is for how many strings a function has room in a list that cannot be
// reached from here.
const roomForStrings = 32

// protoSize is about how many bytes a compiled function takes, with those in it.
func protoSize(p *glua.FunctionProto) int {
	n := int(unsafe.Sizeof(*p))
	n += len(p.Code)*int(unsafe.Sizeof(p.Code[0])) + len(p.DbgSourcePositions)*int(unsafe.Sizeof(p.DbgSourcePositions[0]))
	n += max(roomForStrings-len(p.Constants), 0) * int(unsafe.Sizeof(""))
	for _, c := range p.Constants {
		n += value.ElementSize + stringSize // as a value, and once more as a string
		if text, ok := c.(glua.LString); ok {
			n += len(text)
		}
	}
	for _, v := range p.DbgLocals {
		n += 8 + int(unsafe.Sizeof(*v)) + len(v.Name)
	}
	for _, c := range p.DbgCalls {
		n += int(unsafe.Sizeof(c)) + len(c.Name)
	}
	for _, name := range p.DbgUpvalues {
		n += stringSize + len(name)
	}
	for _, inner := range p.FunctionPrototypes {
		n += 8 + protoSize(inner)
	}
	return n
}

// Size is about how many bytes of memory the script takes, its source included.
func (s *Script) Size() int {
	n := int(unsafe.Sizeof(*s)) + len(s.sha) + len(s.source) + protoSize(s.proto)
	for _, call := range s.facts.calls {
		n += int(unsafe.Sizeof(call)) + len(call.Name) + 8*len(call.Keys)
	}
	return n
}
