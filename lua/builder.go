package lua

import (
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// builder is a string in the making. It announces its memory before it takes it, and
// raises when it is too long.
type builder struct {
	state *State
	l     *glua.LState
	buf   []byte
}

func (s *State) builder(l *glua.LState) builder { return builder{state: s, l: l} }

// grow makes room for n more bytes.
func (b *builder) grow(n int) {
	size := len(b.buf) + n
	if size <= cap(b.buf) {
		return
	}
	guard := &b.state.guard
	if size > guard.limits.Strings {
		guard.announce(b.l, size)
	}
	size = max(size, min(2*cap(b.buf), guard.limits.Strings), 64)
	guard.reserve(b.l, size)
	grown := make([]byte, len(b.buf), size)
	copy(grown, b.buf)
	b.buf = grown
}

// Len is how long the string is by now.
func (b *builder) Len() int { return len(b.buf) }

// put appends one byte.
func (b *builder) put(c byte) {
	b.grow(1)
	b.buf = append(b.buf, c)
}

// WriteString appends s.
func (b *builder) WriteString(s string) {
	b.grow(len(s))
	b.buf = append(b.buf, s...)
}

// Write appends p.
func (b *builder) Write(p []byte) {
	b.grow(len(p))
	b.buf = append(b.buf, p...)
}

// WriteRune appends c in UTF-8.
func (b *builder) WriteRune(c rune) {
	b.grow(utf8.UTFMax)
	b.buf = utf8.AppendRune(b.buf, c)
}

// value is the string, which nothing may be appended to any more.
func (b *builder) value() glua.LString {
	b.state.guard.spend(len(b.buf) / bytesPerStep)
	return glua.LString(value.View(b.buf))
}
