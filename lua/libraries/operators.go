package libraries

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// openOperators sets the hidden functions that rewritten code calls for operations which the
// interpreter does differently from Lua 5.1.
func (r *Runtime) openOperators() {
	for name, f := range map[string]glua.LGFunction{
		compiler.NameConcat: r.concat, compiler.NameForBound: forBound, compiler.NameModulo: modulo, compiler.NameLength: length,
		compiler.NameJoin: r.join, compiler.NameValue: func(*glua.LState) int { return 1 },
	} {
		r.Globals.RawSetString(name, r.L.NewFunction(f))
	}
	r.Globals.RawSetString(compiler.NameGlobals, r.Globals.RawGetString("_G"))
}

// length implements the operator "#" and table.getn. It pushes the length of a table or a string,
// and raises an error for any other value.
func length(l *glua.LState) int {
	switch v := l.Get(1).(type) {
	case *glua.LTable:
		l.Push(value.Number(int64(value.Length(v))))
	case glua.LString:
		l.Push(value.Number(int64(len(v))))
	default:
		sandbox.Raisef(l, "attempt to get length of a %s value", sandbox.NameOf(v))
	}
	return 1
}

// join implements compiler.NameJoin: it joins the parts of a table constructor.
func (r *Runtime) join(l *glua.LState) int {
	t, _ := l.Get(1).(*glua.LTable)
	n, _ := l.Get(2).(glua.LNumber)
	for i := 3; i < l.GetTop(); i += 2 {
		part, _ := l.Get(i).(*glua.LTable)
		plain, _ := l.Get(i + 1).(glua.LNumber)
		r.Guard.Step(l, part.Len()/16)
		part.ForEach(func(k, v glua.LValue) {
			if at, ok := k.(glua.LNumber); ok && plain >= 0 {
				k = at + n
			}
			t.RawSet(k, v)
		})
		n += max(plain, 0)
	}
	l.Push(t)
	return 1
}

func remainder(a, b float64) float64 { return a - math.Floor(a/b)*b }

// modulo implements the operator "%", with the metamethod __mod.
func modulo(l *glua.LState) int {
	a, ok1 := l.Get(1).(glua.LNumber)
	b, ok2 := l.Get(2).(glua.LNumber)
	if ok1 && ok2 {
		l.Push(value.FromFloat(remainder(float64(a), float64(b))))
		return 1
	}
	f := l.GetMetaField(l.Get(1), "__mod")
	if f == glua.LNil {
		f = l.GetMetaField(l.Get(2), "__mod")
	}
	if f == glua.LNil {
		wrong := l.Get(1)
		if ok1 {
			wrong = l.Get(2)
		}
		sandbox.Raisef(l, "attempt to perform arithmetic on a %s value", sandbox.NameOf(wrong))
	}
	l.Push(f)
	l.Push(l.Get(1))
	l.Push(l.Get(2))
	l.Call(2, 1)
	return 1
}

// forBound implements compiler.NameForBound: it converts a bound of a for loop to a number. Values
// that are no number stay as they are, and the loop refuses them.
func forBound(l *glua.LState) int {
	v := l.Get(1)
	if text, ok := v.(glua.LString); ok {
		if f, ok := value.Parse(string(text)); ok {
			v = glua.LNumber(f)
		}
	}
	l.Push(v)
	return 1
}

// concat implements compiler.NameConcat: it joins the operands of a chain of "..". If an operand is
// neither a string nor a number, it may have the metamethod __concat. Then concat joins the
// operands pair by pair, from right to left, as Lua does.
func (r *Runtime) concat(l *glua.LState) int {
	n := l.GetTop()
	total := 0
	var scratch [32]byte
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case glua.LString:
			total += len(v)
		case glua.LNumber:
			total += len(value.Append(scratch[:0], float64(v)))
		default:
			return r.concatPairs(l, n)
		}
	}
	r.Guard.Announce(l, total)
	out := make([]byte, 0, total)
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case glua.LString:
			out = append(out, v...)
		case glua.LNumber:
			out = value.Append(out, float64(v))
		}
	}
	l.Push(glua.LString(value.View(out)))
	return 1
}

func (r *Runtime) concatPairs(l *glua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := l.Get(i)
		a, ok1 := value.Text(left)
		b, ok2 := value.Text(right)
		if ok1 && ok2 {
			r.Guard.Announce(l, len(a)+len(b))
			right = glua.LString(a + b)
			continue
		}
		f := l.GetMetaField(left, "__concat")
		if f == glua.LNil {
			f = l.GetMetaField(right, "__concat")
		}
		if f == glua.LNil {
			wrong := right
			if !ok1 {
				wrong = left
			}
			sandbox.Raisef(l, "attempt to concatenate a %s value", sandbox.NameOf(wrong))
		}
		l.Push(f)
		l.Push(left)
		l.Push(right)
		l.Call(2, 1)
		right = l.Get(-1)
		l.Pop(1)
	}
	l.Push(right)
	return 1
}
