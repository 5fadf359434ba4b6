package lua

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/shared"
)

// maxDepth is the maximum nesting of a reply that a script reads or writes.
const maxDepth = 128

// reader converts a reply in RESP to a Lua value, as Redis 7 does. It counts the work and the
// memory with the guard of sandbox.
type reader struct {
	sandbox *sandbox.State
	state   *glua.LState
	rest    []byte
	size    int          // length of the whole reply in bytes
	refs    []shared.Ref // strings that are stored elsewhere and have not been read yet
}

// line returns b up to the end of its first line, without the line end, or all of b if it has no
// CR.
func line(b []byte) []byte {
	if i := bytes.IndexByte(b, '\r'); i >= 0 {
		return b[:i]
	}
	return b
}

func (in *reader) line() []byte {
	text := line(in.rest)
	in.rest = in.rest[min(len(text)+2, len(in.rest)):]
	return text
}

// integer reads a decimal number up to the end of its line. ok is false if it is malformed.
func (in *reader) integer() (int64, bool) {
	text := in.line()
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		if !value.IsDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// elsewhere reports whether the next string of the reply is stored elsewhere, in refs[0].
func (in *reader) elsewhere() bool {
	return len(in.refs) > 0 && in.refs[0].At == in.size-len(in.rest)
}

func (in *reader) bulk(n int64) (glua.LValue, bool) {
	if in.elsewhere() {
		in.sandbox.Guard.Reserve(in.state, shared.RefSize)
		s := glua.LString(value.View(in.refs[0].Bytes))
		in.refs, in.rest = in.refs[1:], in.rest[2:]
		return s, true
	}
	if n > int64(len(in.rest))-2 {
		return nil, false
	}
	// The string is copied, because the reply is valid only until the next command.
	in.sandbox.Guard.Reserve(in.state, int(n))
	s := glua.LString(in.rest[:n])
	in.rest = in.rest[n+2:]
	return s, true
}

// value reads one reply, which is at the given depth of nesting. ok is false if its bytes are not
// valid, or if it is nested too deeply.
func (in *reader) value(depth int) (glua.LValue, bool) {
	if len(in.rest) < 3 || depth > maxDepth {
		return nil, false
	}
	kind := in.rest[0]
	in.rest = in.rest[1:]
	switch kind {
	case ':':
		n, ok := in.integer()
		return value.Number(n), ok
	case '$', '*', '%', '~', '>', '=':
		n, ok := in.integer()
		if !ok || n < -1 || n > int64(len(in.rest)) && !in.elsewhere() {
			return nil, false
		}
		return in.sized(kind, n, depth)
	case '+':
		return in.tagged("ok", glua.LString(in.line())), true
	case '-':
		return commandError(in.state, string(in.line())), true
	case '_':
		in.line()
		return glua.LNil, true
	case '#':
		return glua.LBool(string(in.line()) == "t"), true
	case ',':
		f, ok := double(string(in.line()))
		return in.tagged("double", glua.LNumber(f)), ok
	case '(':
		return in.tagged("big_number", glua.LString(in.line())), true
	}
	return nil, false
}

// sized reads the rest of a reply of the given kind. n is the count in its head: of bytes, elements
// or pairs. A negative n is a null, which becomes false.
func (in *reader) sized(kind byte, n int64, depth int) (glua.LValue, bool) {
	if n < 0 {
		return glua.LFalse, true
	}
	switch kind {
	case '$':
		return in.bulk(n)
	case '=':
		return in.verbatim(n)
	case '%':
		return in.mapping(n, depth)
	case '~':
		return in.set(n, depth)
	}
	in.sandbox.Guard.Step(in.state, int(n)/4)
	in.sandbox.Guard.Reserve(in.state, int(n)*value.ElementSize)
	t := in.state.CreateTable(int(n), 0)
	for i := range n {
		v, ok := in.value(depth + 1)
		if !ok {
			return nil, false
		}
		if i < value.ArrayMax-1 {
			t.RawSetInt(int(i)+1, v)
		} else {
			t.RawSet(glua.LNumber(i+1), v)
		}
	}
	return t, true
}

func (in *reader) verbatim(n int64) (glua.LValue, bool) {
	if n < 4 {
		return nil, false
	}
	text, ok := in.bulk(n)
	if !ok {
		return nil, false
	}
	s := string(text.(glua.LString))
	t := in.state.CreateTable(0, 2)
	t.RawSetString("format", glua.LString(s[:3]))
	t.RawSetString("string", glua.LString(s[4:]))
	return in.tagged("verbatim_string", t), true
}

func (in *reader) mapping(n int64, depth int) (glua.LValue, bool) {
	t := in.state.CreateTable(0, int(min(n, 1024)))
	for range n {
		k, ok1 := in.value(depth + 1)
		v, ok2 := in.value(depth + 1)
		if !ok1 || !ok2 {
			return nil, false
		}
		in.put(t, k, v)
	}
	return in.tagged("map", t), true
}

func (in *reader) set(n int64, depth int) (glua.LValue, bool) {
	t := in.state.CreateTable(0, int(min(n, 1024)))
	for range n {
		k, ok := in.value(depth + 1)
		if !ok {
			return nil, false
		}
		in.put(t, k, glua.LTrue)
	}
	return in.tagged("set", t), true
}

// put sets t[k] = v. It ignores the keys nil and NaN, which a table cannot have.
func (in *reader) put(t *glua.LTable, k, v glua.LValue) {
	if f, ok := k.(glua.LNumber); ok && math.IsNaN(float64(f)) || k == glua.LNil {
		return
	}
	in.sandbox.Guard.Step(in.state, 1)
	t.RawSet(k, v)
}

func (in *reader) tagged(name string, v glua.LValue) glua.LValue {
	t := in.state.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

func double(text string) (float64, bool) {
	switch strings.ToLower(text) {
	case "inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "nan", "-nan":
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}
