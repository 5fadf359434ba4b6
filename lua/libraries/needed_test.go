package libraries_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/libraries"
	"github.com/cellserver/cellserver/lua/sandbox"
)

// TestNoFunctionRepeatsTheInterpreters: each function of this package differs from the
// interpreter's function of that name for some call with no, one or two arguments: in a value, or
// in an error, whose text is that of Lua 5.1 because clients see it. A function that does not
// differ any more can be replaced by the interpreter's.
func TestNoFunctionRepeatsTheInterpreters(t *testing.T) {
	// Using the interpreter's function would take more code than this one.
	same := map[string]bool{"coroutine.running": true}
	var s sandbox.State
	var r libraries.Runtime
	s.Open(sandbox.NewMemory(sandbox.Limits{Memory: 256 << 20, Strings: 1 << 20, PatternSteps: 1 << 20, Coroutines: 1000}))
	defer s.Close()
	r.Open(&s)
	s.Begin()
	theirs := glua.NewState()
	defer theirs.Close()
	ours := functions(s.Globals, s.Original)
	require.Greater(t, len(ours), 70)
	for name, f := range functions(theirs.G.Global, func(t *glua.LTable) *glua.LTable { return t }) {
		// The interpreter's function would collect the garbage of the whole process.
		if ours[name] != nil && name != "collectgarbage" {
			require.Equal(t, same[name], repeats(s.L, theirs, ours[name], f), name)
		}
	}
}

// functions returns the functions of the base library and of the other libraries of Lua 5.1 by
// their names.
func functions(globals *glua.LTable, original func(*glua.LTable) *glua.LTable) map[string]*glua.LFunction {
	all := map[string]*glua.LFunction{}
	gather := func(prefix string, t *glua.LTable) {
		t.ForEach(func(k, v glua.LValue) {
			if f, ok := v.(*glua.LFunction); ok {
				all[prefix+k.String()] = f
			}
		})
	}
	gather("", globals)
	for _, name := range []string{"math", "coroutine", "table", "string"} {
		gather(name+".", original(globals.RawGetString(name).(*glua.LTable)))
	}
	return all
}

// repeats reports whether two functions give the same results for all arguments tried here.
func repeats(a, b *glua.LState, f, g *glua.LFunction) bool {
	of, og := values(a), values(b)
	same := answer(a, f) == answer(b, g)
	for i := range of {
		same = same && answer(a, f, of[i]) == answer(b, g, og[i])
		for j := range of {
			same = same && answer(a, f, of[i], of[j]) == answer(b, g, og[i], og[j])
		}
	}
	return same
}

func values(l *glua.LState) []glua.LValue {
	list := l.NewTable()
	list.Append(glua.LNumber(1))
	list.Append(glua.LString("x"))
	return []glua.LValue{
		glua.LNil, glua.LTrue, glua.LNumber(0), glua.LNumber(-1), glua.LNumber(0.5), glua.LNumber(1000), glua.LNumber(math.Inf(1)),
		glua.LString(""), glua.LString("7"), glua.LString("010"), glua.LString("x"), list, l.NewFunction(func(l *glua.LState) int { return l.GetTop() }),
	}
}

// answer formats the result of f, or its error without the position.
func answer(l *glua.LState, f *glua.LFunction, args ...glua.LValue) string {
	defer l.SetTop(l.GetTop())
	top := l.GetTop()
	if err := l.CallByParam(glua.P{Fn: f, NRet: glua.MultRet, Protect: true}, args...); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return "error: " + strings.TrimSpace(text)
	}
	var b strings.Builder
	for i := top + 1; i <= l.GetTop(); i++ {
		switch v := l.Get(i).(type) {
		case glua.LNumber, glua.LString, glua.LBool:
			fmt.Fprintf(&b, "%s %#v,", v.Type(), v)
		default:
			b.WriteString(v.Type().String() + ",")
		}
	}
	return b.String()
}
