package compiler

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// trim frees the spare memory of p and of the functions inside it. The compiler reserves 12 KiB for
// the instructions of each function.
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

// exact returns a copy of s without spare capacity, or nil if s is empty.
func exact[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(make([]T, 0, len(s)), s...)
}

// stringSize is the memory in bytes of a short string, beside its characters: a string header, and
// another one in the value that contains it.
const stringSize = 2 * int(unsafe.Sizeof(""))

// roomForStrings is the capacity of a list of strings that each function has in an unexported field
// of the interpreter.
const roomForStrings = 32

// protoSize returns the approximate memory in bytes of a compiled function and of the functions
// inside it.
func protoSize(p *glua.FunctionProto) int {
	n := int(unsafe.Sizeof(*p))
	n += len(p.Code)*int(unsafe.Sizeof(p.Code[0])) + len(p.DbgSourcePositions)*int(unsafe.Sizeof(p.DbgSourcePositions[0]))
	n += max(roomForStrings-len(p.Constants), 0) * int(unsafe.Sizeof(""))
	for _, c := range p.Constants {
		n += value.ElementSize + stringSize // a constant is stored as a value, and also as a string
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

// Size returns the approximate memory of the script in bytes, including its source.
func (s *Script) Size() int {
	n := int(unsafe.Sizeof(*s)) + len(s.sha) + len(s.source) + protoSize(s.proto)
	for _, call := range s.facts.calls {
		n += int(unsafe.Sizeof(call)) + len(call.Name) + 8*len(call.Keys)
	}
	return n
}
