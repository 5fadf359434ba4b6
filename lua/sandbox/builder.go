package sandbox

import (
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// Builder builds a string for a script. It announces all memory to the guard before it allocates
// the memory, and raises an error if the string is too long or if there is not enough memory. Buf
// has the bytes so far; code that appends to Buf itself must call Grow first.
type Builder struct {
	guard *Guard
	l     *glua.LState
	Buf   []byte
}

// NewBuilder returns an empty Builder for the state l. Its memory and time count for the script of
// g.
func (g *Guard) NewBuilder(l *glua.LState) Builder { return Builder{guard: g, l: l} }

// Grow makes room for n more bytes in Buf. It raises an error if the string becomes too long or if
// there is not enough memory.
func (b *Builder) Grow(n int) {
	size := len(b.Buf) + n
	if size <= cap(b.Buf) {
		return
	}
	guard := b.guard
	if size > guard.Limits.Strings {
		guard.Announce(b.l, size)
	}
	size = max(size, min(2*cap(b.Buf), guard.Limits.Strings), 64)
	guard.Reserve(b.l, size)
	grown := make([]byte, len(b.Buf), size)
	copy(grown, b.Buf)
	b.Buf = grown
}

// Len returns the length of the string so far, in bytes.
func (b *Builder) Len() int { return len(b.Buf) }

// Put appends the byte c.
func (b *Builder) Put(c byte) {
	b.Grow(1)
	b.Buf = append(b.Buf, c)
}

// WriteString appends s.
func (b *Builder) WriteString(s string) {
	b.Grow(len(s))
	b.Buf = append(b.Buf, s...)
}

// Write appends p.
func (b *Builder) Write(p []byte) {
	b.Grow(len(p))
	b.Buf = append(b.Buf, p...)
}

// WriteRune appends c in UTF-8.
func (b *Builder) WriteRune(c rune) {
	b.Grow(utf8.UTFMax)
	b.Buf = utf8.AppendRune(b.Buf, c)
}

// Value returns the string, which shares the bytes of Buf: nothing may be appended afterwards.
// Value counts the bytes as instructions.
func (b *Builder) Value() glua.LString {
	b.guard.Spend(len(b.Buf) / BytesPerStep)
	return glua.LString(value.View(b.Buf))
}
