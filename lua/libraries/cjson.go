package libraries

import (
	"math"
	"strconv"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

func (r *Runtime) jsonLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{
		"encode": r.jsonEncode, "decode": r.jsonDecode,
		"new":                     func(l *glua.LState) int { l.Push(r.Globals.RawGetString("cjson")); return 1 },
		"encode_max_depth":        r.jsonNumber(func(s *jsonSettings) *int { return &s.encodeDepth }, maxJSONDepth, math.MaxInt32),
		"decode_max_depth":        r.jsonNumber(func(s *jsonSettings) *int { return &s.decodeDepth }, maxJSONDepth, math.MaxInt32),
		"encode_number_precision": r.jsonNumber(func(s *jsonSettings) *int { return &s.precision }, 14, 14),
		"encode_keep_buffer":      r.jsonSwitch(func(s *jsonSettings) *bool { return &s.dropBuffer }),
		"decode_invalid_numbers":  r.jsonSwitch(func(s *jsonSettings) *bool { return &s.refuseInvalid }),
		"encode_invalid_numbers":  r.jsonInvalid,
		"encode_sparse_array":     r.jsonSparse,
	}
}

// jsonNumber returns a function that sets the setting field to its argument, from 1 to most, and
// returns the new value. Without an argument the function returns the present value. otherwise is
// the default of the setting.
func (r *Runtime) jsonNumber(field func(*jsonSettings) *int, otherwise, most int) glua.LGFunction {
	return func(l *glua.LState) int {
		at := field(&r.json)
		if l.Get(1) != glua.LNil {
			n := sandbox.CheckInt(l, 1)
			if n < 1 || n > int64(most) {
				sandbox.ArgError(l, 1, "expected integer between 1 and "+strconv.Itoa(most))
			}
			*at = int(n)
		}
		l.Push(value.Number(int64(orDefault(*at, otherwise))))
		return 1
	}
}

// jsonSwitch returns a function that sets a switch which is on by default, and returns its new
// state. The field stores the opposite: true is off.
func (r *Runtime) jsonSwitch(field func(*jsonSettings) *bool) glua.LGFunction {
	return func(l *glua.LState) int {
		at := field(&r.json)
		switch v := l.Get(1).(type) {
		case glua.LBool:
			*at = !bool(v)
		case glua.LString:
			*at = v == "off"
		}
		l.Push(glua.LBool(!*at))
		return 1
	}
}

func (r *Runtime) jsonInvalid(l *glua.LState) int {
	switch v := l.Get(1).(type) {
	case glua.LBool:
		r.json.invalidEncode = "off"
		if v {
			r.json.invalidEncode = "on"
		}
	case glua.LString:
		if v != "on" && v != "off" && v != "null" {
			sandbox.ArgError(l, 1, "invalid option '"+string(v)+"'")
		}
		r.json.invalidEncode = string(v)
	}
	switch r.json.invalidEncode {
	case "on":
		l.Push(glua.LTrue)
	case "null":
		l.Push(glua.LString("null"))
	default:
		l.Push(glua.LFalse)
	}
	return 1
}

func (r *Runtime) jsonSparse(l *glua.LState) int {
	s := &r.json
	if v, ok := l.Get(1).(glua.LBool); ok {
		s.sparse = bool(v)
	}
	if !s.ratioSet {
		s.sparseRatio, s.sparseSafe, s.ratioSet = 2, 10, true
	}
	for i, at := range []*int{&s.sparseRatio, &s.sparseSafe} {
		if l.Get(i+2) != glua.LNil {
			n := sandbox.CheckInt(l, i+2)
			if n < 0 || n > math.MaxInt32 {
				sandbox.ArgError(l, i+2, "expected integer between 0 and 2147483647")
			}
			*at = int(n)
		}
	}
	l.Push(glua.LBool(s.sparse))
	l.Push(value.Number(int64(s.sparseRatio)))
	l.Push(value.Number(int64(s.sparseSafe)))
	return 3
}

// jsonEncoder encodes values in JSON as lua-cjson 2.1 does.
type jsonEncoder struct {
	run *Runtime
	l   *glua.LState
	b   sandbox.Builder
}

func (r *Runtime) jsonEncode(l *glua.LState) int {
	if l.GetTop() != 1 {
		sandbox.ArgError(l, 1, "expected 1 argument")
	}
	e := jsonEncoder{run: r, l: l, b: r.Guard.NewBuilder(l)}
	e.value(l.Get(1), 0)
	l.Push(e.b.Value())
	return 1
}

func (e *jsonEncoder) value(v glua.LValue, depth int) {
	e.run.Guard.Step(e.l, 1)
	switch v := v.(type) {
	case glua.LString:
		e.text(string(v))
	case glua.LNumber:
		e.number(float64(v))
	case glua.LBool:
		e.b.WriteString(v.String())
	case *glua.LTable:
		e.table(v, depth+1)
	default:
		if v != glua.LNil && v != glua.LValue(e.run.nullValue) {
			e.fail(v, "type not supported")
		}
		e.b.WriteString("null")
	}
}

func (e *jsonEncoder) fail(v glua.LValue, why string) {
	sandbox.Raisef(e.l, "Cannot serialise %s: %s", sandbox.NameOf(v), why)
}

func (e *jsonEncoder) number(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		switch e.run.json.invalidEncode {
		case "on":
		case "null":
			e.b.WriteString("null")
			return
		default:
			e.fail(glua.LNumber(f), "must not be NaN or Inf")
		}
	}
	var scratch [40]byte
	if precision := orDefault(e.run.json.precision, 14); precision != 14 {
		e.b.Write(value.AppendG(scratch[:0], f, precision))
		return
	}
	e.b.Write(value.Append(scratch[:0], f))
}

const hexDigits = "0123456789abcdef"

func (e *jsonEncoder) text(s string) {
	e.run.Guard.Step(e.l, len(s)/64)
	e.b.Put('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '/':
			e.b.Put('\\')
			e.b.Put(c)
		case '\b':
			e.b.WriteString(`\b`)
		case '\t':
			e.b.WriteString(`\t`)
		case '\n':
			e.b.WriteString(`\n`)
		case '\f':
			e.b.WriteString(`\f`)
		case '\r':
			e.b.WriteString(`\r`)
		default:
			if c < 0x20 || c == 0x7f {
				e.b.WriteString(`\u00`)
				e.b.Put(hexDigits[c>>4])
				e.b.Put(hexDigits[c&15])
			} else {
				e.b.Put(c)
			}
		}
	}
	e.b.Put('"')
}

func (e *jsonEncoder) table(t *glua.LTable, depth int) {
	limit := min(orDefault(e.run.json.encodeDepth, maxJSONDepth), maxJSONDepth)
	if depth > limit {
		sandbox.Raisef(e.l, "Cannot serialise, excessive nesting (%d)", depth)
	}
	t = e.run.Original(t)
	if n := e.arrayLength(t); n > 0 {
		e.b.Put('[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.b.Put(',')
			}
			e.value(t.RawGet(glua.LNumber(i)), depth)
		}
		e.b.Put(']')
		return
	}
	e.object(t, depth)
}

func (e *jsonEncoder) object(t *glua.LTable, depth int) {
	e.b.Put('{')
	first := true
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if t == e.run.Globals && compiler.Hidden(k) {
			continue
		}
		if !first {
			e.b.Put(',')
		}
		first = false
		switch k := k.(type) {
		case glua.LString:
			e.text(string(k))
		case glua.LNumber:
			e.b.Put('"')
			e.number(float64(k))
			e.b.Put('"')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.b.Put(':')
		e.value(v, depth)
	}
	e.b.Put('}')
}

// arrayLength returns the highest index of t if all keys are positive integers and few of them are
// missing. It returns 0 if t is to be encoded as an object. It raises an error if too many are
// missing and the settings do not convert such arrays to objects.
func (e *jsonEncoder) arrayLength(t *glua.LTable) int {
	highest, items := 0.0, 0
	for k, _ := t.Next(glua.LNil); k != glua.LNil; k, _ = t.Next(k) {
		n, ok := k.(glua.LNumber)
		if !ok || n < 1 || math.Floor(float64(n)) != float64(n) {
			return 0
		}
		highest = max(highest, float64(n))
		items++
	}
	ratio, safe := 2, 10
	if s := e.run.json; s.ratioSet {
		ratio, safe = s.sparseRatio, s.sparseSafe
	}
	if ratio > 0 && highest > float64(items*ratio) && highest > float64(safe) {
		if !e.run.json.sparse {
			e.fail(t, "excessively sparse array")
		}
		return 0
	}
	if highest > math.MaxInt32 {
		e.fail(t, "excessively sparse array")
	}
	return int(highest)
}
