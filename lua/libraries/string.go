package libraries

import (
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// openString sets the library string and the metatable of all strings. The metatable also has the
// arithmetic operators, since the interpreter itself would read "010" as eight.
func (r *Runtime) openString() {
	l := r.L
	library := r.Table(map[string]glua.LGFunction{
		"byte": r.stringByte, "char": r.stringChar, "dump": stringDump, "find": r.find, "format": r.format,
		"gfind": r.gmatch, "gmatch": r.gmatch, "gsub": r.gsub, "len": stringLen, "lower": r.lower,
		"match": r.match, "rep": r.rep, "reverse": r.reverse, "sub": stringSub, "upper": r.upper,
	})
	view := r.ReadOnly(library)
	r.Globals.RawSetString("string", view)
	meta := r.Table(map[string]glua.LGFunction{
		"__add": arithmetic(func(a, b float64) float64 { return a + b }),
		"__sub": arithmetic(func(a, b float64) float64 { return a - b }),
		"__mul": arithmetic(func(a, b float64) float64 { return a * b }),
		"__div": arithmetic(func(a, b float64) float64 { return a / b }),
		"__mod": arithmetic(remainder),
		"__pow": arithmetic(math.Pow),
		"__unm": arithmetic(func(a, _ float64) float64 { return -a }),
	})
	meta.RawSetString("__index", library)
	l.SetMetatable(glua.LString(""), meta)
	shown := l.CreateTable(0, 1)
	shown.RawSetString("__index", view)
	r.stringMeta = r.ReadOnly(shown)
}

// arithmetic returns a metamethod that applies f to two operands, each of which is a number or a
// numeric string. The interpreter calls the metamethod if an operand is a string. The metamethod raises
// an error if an operand is anything else. If the string comes first, this is so even if the second
// operand has a metamethod of its own, because the interpreter does not look for that one.
func arithmetic(f func(a, b float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		a, ok1 := value.ToNumber(l.Get(1))
		b, ok2 := 0.0, true
		if l.GetTop() > 1 {
			b, ok2 = value.ToNumber(l.Get(2))
		}
		if !ok1 || !ok2 {
			wrong := l.Get(2)
			if !ok1 && l.Get(1).Type() == glua.LTString || ok2 {
				wrong = l.Get(1)
			}
			sandbox.Raisef(l, "attempt to perform arithmetic on a %s value", sandbox.NameOf(wrong))
		}
		l.Push(value.FromFloat(f(a, b)))
		return 1
	}
}

func stringDump(l *glua.LState) int {
	sandbox.CheckFunction(l, 1)
	sandbox.Raisef(l, "unable to dump given function")
	return 0
}

func stringLen(l *glua.LState) int {
	l.Push(value.Number(int64(len(sandbox.CheckText(l, 1)))))
	return 1
}

// span returns the range of s that string.sub and string.byte mean by the indices first and last,
// which count from 1, or from the end if they are negative. The range begins at the first result
// and ends before the second. It is empty if first is behind last.
func span(l *glua.LState, s string, first, last int64) (int, int) {
	from := relative(first, len(s))
	to := relative(last, len(s))
	from = max(from, 1)
	to = min(to, int64(len(s)))
	if from > to {
		return 0, 0
	}
	return int(from) - 1, int(to)
}

func stringSub(l *glua.LState) int {
	s := sandbox.CheckText(l, 1)
	from, to := span(l, s, sandbox.CheckInt(l, 2), sandbox.OptInt(l, 3, -1))
	l.Push(glua.LString(s[from:to]))
	return 1
}

func (r *Runtime) stringByte(l *glua.LState) int {
	s := sandbox.CheckText(l, 1)
	first := sandbox.OptInt(l, 2, 1)
	from, to := span(l, s, first, sandbox.OptInt(l, 3, relative(first, len(s))))
	if to-from >= maxUnpack {
		sandbox.Raisef(l, "string slice too long")
	}
	for i := from; i < to; i++ {
		l.Push(value.Number(int64(s[i])))
	}
	return to - from
}

func (r *Runtime) stringChar(l *glua.LState) int {
	b := make([]byte, l.GetTop())
	for i := range b {
		c := sandbox.CheckInt(l, i+1)
		if c < 0 || c > 255 {
			sandbox.ArgError(l, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	l.Push(glua.LString(b))
	return 1
}

// mapped returns the first argument. Before that it announces to the guard the memory and time for
// a new string of the same length.
func (r *Runtime) mapped(l *glua.LState) string {
	s := sandbox.CheckText(l, 1)
	r.Guard.Announce(l, len(s))
	r.Guard.Step(l, len(s)/64)
	return s
}

func (r *Runtime) lower(l *glua.LState) int {
	return changeCase(l, r.mapped(l), 'A', 'Z')
}

func (r *Runtime) upper(l *glua.LState) int {
	return changeCase(l, r.mapped(l), 'a', 'z')
}

// changeCase pushes s in which all ASCII letters from the byte from to the byte to have the other
// case.
func changeCase(l *glua.LState, s string, from, to byte) int {
	b := []byte(s)
	for i, c := range b {
		if from <= c && c <= to {
			b[i] = c ^ 0x20
		}
	}
	l.Push(glua.LString(value.View(b)))
	return 1
}

func (r *Runtime) reverse(l *glua.LState) int {
	s := r.mapped(l)
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	l.Push(glua.LString(value.View(b)))
	return 1
}

func (r *Runtime) rep(l *glua.LState) int {
	s := sandbox.CheckText(l, 1)
	n := sandbox.CheckInt(l, 2)
	if n <= 0 || s == "" {
		l.Push(glua.LString(""))
		return 1
	}
	if n > int64(r.Guard.Limits.Strings) {
		n = int64(r.Guard.Limits.Strings) + 1
	}
	r.Guard.Announce(l, int(min(n*int64(len(s)), math.MaxInt32)))
	l.Push(glua.LString(strings.Repeat(s, int(n))))
	return 1
}
