package compiler

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// trim frees the spare memory that the compiler has reserved for instructions of each function: 12
// KiB of it.
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

// stringSize is the memory of a short string beside its bytes: its header, and that of its value.
const stringSize = 2 * int(unsafe.Sizeof(""))

// roomForStrings is the capacity of a list of strings in each function, which is not accessible
// from here.
const roomForStrings = 32

// protoSize returns the approximate memory of a compiled function and of those inside it.
func protoSize(p *glua.FunctionProto) int {
	n := int(unsafe.Sizeof(*p))
	n += len(p.Code)*int(unsafe.Sizeof(p.Code[0])) + len(p.DbgSourcePositions)*int(unsafe.Sizeof(p.DbgSourcePositions[0]))
	n += max(roomForStrings-len(p.Constants), 0) * int(unsafe.Sizeof(""))
	for _, c := range p.Constants {
		n += value.ElementSize + stringSize // as a value, and also as a string
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

// Size returns the approximate number of bytes of memory of the script, including its source.
func (s *Script) Size() int {
	n := int(unsafe.Sizeof(*s)) + len(s.sha) + len(s.source) + protoSize(s.proto)
	for _, call := range s.facts.calls {
		n += int(unsafe.Sizeof(call)) + len(call.Name) + 8*len(call.Keys)
	}
	return n
}
