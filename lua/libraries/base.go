package libraries

import (
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// openBase sets the basic functions of Lua, which are globals, and _VERSION.
func (r *Runtime) openBase() {
	l := r.L
	for name, f := range map[string]glua.LGFunction{
		"assert": r.assert, "collectgarbage": collectGarbage, "error": r.raise, "gcinfo": gcInfo,
		"getmetatable": r.getMetatable, "ipairs": r.ipairs, "load": r.loadFunction, "loadstring": r.loadString,
		"next": r.next, "pairs": r.pairs, "pcall": r.pcall, "rawequal": rawEqual, "rawget": r.rawGet,
		"rawset": r.rawSet, "select": selectValues, "setmetatable": r.setMetatable, "tonumber": luaToNumber,
		"tostring": r.luaToString, "type": typeOf, "unpack": r.unpack, "xpcall": r.xpcall,
	} {
		r.Globals.RawSetString(name, l.NewFunction(f))
	}
	r.Globals.RawSetString("_VERSION", glua.LString("Lua 5.1"))
}

func (r *Runtime) assert(l *glua.LState) int {
	sandbox.CheckAny(l, 1)
	if l.ToBool(1) {
		return l.GetTop()
	}
	message := "assertion failed!"
	if l.GetTop() >= 2 && l.Get(2) != glua.LNil {
		text, ok := value.Text(l.Get(2))
		if !ok {
			sandbox.ArgError(l, 2, "string expected, got "+l.Get(2).Type().String())
		}
		message = text
	}
	sandbox.Raisef(l, "%s", message)
	return 0
}

// collectGarbage implements collectgarbage. It collects nothing, since a garbage collection would
// concern the whole server.
func collectGarbage(l *glua.LState) int {
	switch option := sandbox.OptText(l, 1, "collect"); option {
	case "collect", "stop", "restart", "count", "setpause", "setstepmul":
		l.Push(value.Number(0))
	case "step":
		l.Push(glua.LTrue)
	default:
		sandbox.ArgError(l, 1, "invalid option '"+option+"'")
	}
	return 1
}

func gcInfo(l *glua.LState) int {
	l.Push(value.Number(0))
	l.Push(value.Number(0))
	return 2
}

func (r *Runtime) getMetatable(l *glua.LState) int {
	switch v := sandbox.CheckAny(l, 1).(type) {
	case *glua.LTable:
		if r.IsReadOnly(v) {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(publicMetatable(v.Metatable))
	case glua.LString:
		l.Push(r.stringMeta)
	default:
		l.Push(glua.LNil)
	}
	return 1
}

// publicMetatable returns what getmetatable returns for a table with the metatable meta: the field
// __metatable if there is one, else meta.
func publicMetatable(meta glua.LValue) glua.LValue {
	if t, ok := meta.(*glua.LTable); ok {
		if instead := t.RawGetString("__metatable"); instead != glua.LNil {
			return instead
		}
	}
	return meta
}

func (r *Runtime) setMetatable(l *glua.LState) int {
	t := sandbox.CheckTable(l, 1)
	meta := l.Get(2)
	if l.GetTop() < 2 || meta.Type() != glua.LTNil && meta.Type() != glua.LTTable {
		sandbox.ArgError(l, 2, "nil or table expected")
	}
	r.Writable(l, t)
	if old, ok := t.Metatable.(*glua.LTable); ok && old.RawGetString("__metatable") != glua.LNil {
		sandbox.Raisef(l, "cannot change a protected metatable")
	}
	t.Metatable = meta
	l.SetTop(1)
	return 1
}

func (r *Runtime) ipairs(l *glua.LState) int {
	t := sandbox.CheckTable(l, 1)
	l.Push(r.ipairsStep)
	l.Push(t)
	l.Push(value.Number(0))
	return 3
}

func (r *Runtime) ipairsNext(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	i := l.CheckNumber(2) + 1
	v := t.RawGet(i)
	if v == glua.LNil {
		l.Push(glua.LNil)
		return 1
	}
	l.Push(value.Number(int64(i)))
	l.Push(v)
	return 2
}

func (r *Runtime) pairs(l *glua.LState) int {
	t := sandbox.CheckTable(l, 1)
	l.Push(r.nextFunction)
	l.Push(t)
	l.Push(glua.LNil)
	return 3
}

func (r *Runtime) next(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	key := glua.LNil
	if l.GetTop() >= 2 {
		key = l.Get(2)
	}
	for {
		k, v := t.Next(key)
		if k == glua.LNil {
			l.Push(glua.LNil)
			return 1
		}
		if t != r.Globals || !compiler.Hidden(k) {
			l.Push(k)
			l.Push(v)
			return 2
		}
		key = k
	}
}

func rawEqual(l *glua.LState) int {
	sandbox.CheckAny(l, 2)
	l.Push(glua.LBool(l.RawEqual(l.Get(1), l.Get(2))))
	return 1
}

func (r *Runtime) rawGet(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	sandbox.CheckAny(l, 2)
	if key := l.Get(2); t == r.Globals && compiler.Hidden(key) {
		l.Push(glua.LNil)
	} else {
		l.Push(t.RawGet(key))
	}
	return 1
}

func (r *Runtime) rawSet(l *glua.LState) int {
	t := r.Writable(l, sandbox.CheckTable(l, 1))
	sandbox.CheckAny(l, 3)
	key := l.Get(2)
	if key == glua.LNil {
		sandbox.Throw(l, "table index is nil")
	}
	if n, ok := key.(glua.LNumber); ok && math.IsNaN(float64(n)) {
		sandbox.Throw(l, "table index is NaN")
	}
	t.RawSet(key, l.Get(3))
	l.SetTop(1)
	return 1
}

func selectValues(l *glua.LState) int {
	count := l.GetTop() - 1
	if s, ok := l.Get(1).(glua.LString); ok && len(s) > 0 && s[0] == '#' {
		l.Push(value.Number(int64(count)))
		return 1
	}
	n := sandbox.CheckInt(l, 1)
	switch {
	case n < 0:
		n += int64(count) + 1
	case n > int64(count):
		return 0
	}
	if n < 1 {
		sandbox.ArgError(l, 1, "index out of range")
	}
	return count - int(n) + 1
}

func typeOf(l *glua.LState) int {
	l.Push(glua.LString(sandbox.NameOf(sandbox.CheckAny(l, 1))))
	return 1
}

func luaToNumber(l *glua.LState) int {
	base := sandbox.OptInt(l, 2, 10)
	if base == 10 {
		v := sandbox.CheckAny(l, 1)
		if _, ok := v.(glua.LNumber); ok {
			l.Push(v)
			return 1
		}
		if f, ok := value.ToNumber(v); ok {
			l.Push(value.FromFloat(f))
		} else {
			l.Push(glua.LNil)
		}
		return 1
	}
	text := sandbox.CheckText(l, 1)
	if base < 2 || base > 36 {
		sandbox.ArgError(l, 2, "base out of range")
	}
	if f, ok := value.ParseBase(text, int(base)); ok {
		l.Push(glua.LNumber(f))
	} else {
		l.Push(glua.LNil)
	}
	return 1
}

func (r *Runtime) luaToString(l *glua.LState) int {
	l.Push(r.text(l, sandbox.CheckAny(l, 1)))
	return 1
}

// text implements tostring: it returns v as a string. It may call the metamethod __tostring of v,
// whose result need not be a string.
func (r *Runtime) text(l *glua.LState, v glua.LValue) glua.LValue {
	switch v := v.(type) {
	case glua.LString:
		return v
	case glua.LNumber:
		return glua.LString(value.Spell(v))
	case *glua.LTable:
		if f := l.GetMetaField(v, "__tostring"); f != glua.LNil {
			l.Push(f)
			l.Push(v)
			l.Call(1, 1)
			result := l.Get(-1)
			l.Pop(1)
			return result
		}
	case *glua.LUserData:
		// The only userdata is cjson.null, which is a null pointer in Redis.
		return glua.LString("userdata: (nil)")
	}
	return glua.LString(v.String())
}

const maxUnpack = 8000

func (r *Runtime) unpack(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	first := sandbox.OptInt(l, 2, 1)
	last := sandbox.OptInt(l, 3, int64(value.Length(t)))
	if first > last {
		return 0
	}
	count := last - first + 1
	if count <= 0 || count >= maxUnpack {
		sandbox.Raisef(l, "too many results to unpack")
	}
	for i := range count {
		l.Push(t.RawGet(glua.LNumber(first + i)))
	}
	return int(count)
}

// loadString implements loadstring, which compiles a text. It returns errors to the script instead
// of raising them.
func (r *Runtime) loadString(l *glua.LState) int {
	source := sandbox.CheckText(l, 1)
	name := source
	if l.Get(2) != glua.LNil {
		name = sandbox.CheckText(l, 2)
	}
	return r.loadText(l, source, name)
}

// loadFunction implements load, which compiles the text that a function returns in pieces. The text
// ends at a nil or empty piece. A text longer than compiler.MaxSource is not read to its end.
func (r *Runtime) loadFunction(l *glua.LState) int {
	reader := sandbox.CheckFunction(l, 1)
	name := "=(load)"
	if l.Get(2) != glua.LNil {
		name = sandbox.CheckText(l, 2)
	}
	source := r.Guard.NewBuilder(l)
	for {
		l.Push(reader)
		l.Call(0, 1)
		piece := l.Get(-1)
		l.Pop(1)
		if piece == glua.LNil {
			break
		}
		text, ok := value.Text(piece)
		if !ok {
			sandbox.Raisef(l, "reader function must return a string")
		}
		if text == "" {
			break
		}
		r.Guard.Step(l, 1)
		source.WriteString(text)
		if source.Len() > compiler.MaxSource {
			break
		}
	}
	return r.loadText(l, string(source.Value()), name)
}

// compileBytes is the temporary memory, in bytes, that the compiler takes for each byte of source.
// functionBytes is the temporary memory for each function in source.
const (
	compileBytes  = 64
	functionBytes = 17 << 10
)

// loadText compiles source and pushes the function, or nil and an error. It refuses source longer
// than compiler.MaxSource before it allocates memory for it.
func (r *Runtime) loadText(l *glua.LState, source, name string) int {
	if len(source) > compiler.MaxSource {
		l.Push(glua.LNil)
		l.Push(glua.LString(compiler.ErrTooLong(displayName(name)).Error()))
		return 2
	}
	// Each byte of source counts as an instruction, although compiling a byte takes about as long
	// as 20 instructions.
	r.Guard.Step(l, len(source))
	r.Guard.Reserve(l, compileBytes*len(source)+functionBytes*strings.Count(source, "function"))
	proto, err := compiler.Load([]byte(source), displayName(name))
	if err != nil {
		l.Push(glua.LNil)
		l.Push(glua.LString(err.Error()))
		return 2
	}
	l.Push(l.NewFunctionFromProto(proto))
	return 1
}

// displayName returns the name of a chunk as Lua displays it in messages. A name without "=" or "@"
// in front is source text, of which displayName returns the beginning of the first line.
func displayName(name string) string {
	const room = 60 - len(`[string "..."]`) - 1
	if strings.HasPrefix(name, "=") || strings.HasPrefix(name, "@") {
		return name[1:min(len(name), 60)]
	}
	line, _, cut := strings.Cut(name, "\n")
	if len(line) > room {
		line, cut = line[:room], true
	}
	if cut {
		return `[string "` + line + `..."]`
	}
	return `[string "` + line + `"]`
}
