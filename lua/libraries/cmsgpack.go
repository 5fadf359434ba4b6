package libraries

import (
	"errors"
	"math"

	"github.com/tinylib/msgp/msgp"
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

const (
	// packLevels is the maximum nesting of packed tables. Tables nested more deeply become nil.
	packLevels = 16
	// cStack is the maximum number of values of a C function on the stack of Lua. It bounds the
	// arguments and results of cmsgpack, and the nesting of a message.
	cStack = 8000
	// maxPacked is the maximum number of arguments of cmsgpack.pack.
	maxPacked = cStack / 2
)

const (
	errPackedMany    = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)"
	errPackedDeep    = "stack overflow (in function mp_decode_to_lua_array)"
	errPackedShort   = "Missing bytes in input."
	errPackedInvalid = "Bad data format in input."
)

// msgpackLibrary returns the functions of lua-cmsgpack 0.4.0, as in Redis.
func (r *Runtime) msgpackLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{
		"pack": r.pack, "unpack": r.unpackAll, "unpack_one": r.unpackOne, "unpack_limit": r.unpackLimit,
	}
}

// pack implements cmsgpack.pack. It encodes its arguments one after another. No argument, or more
// than maxPacked arguments, raise an error.
func (r *Runtime) pack(l *glua.LState) int {
	n := l.GetTop()
	if n == 0 {
		sandbox.ArgError(l, 0, "MessagePack pack needs input.")
	}
	if n > maxPacked {
		sandbox.ArgError(l, 0, "Too many arguments for MessagePack pack.")
	}
	p := packer{run: r, l: l, out: r.Guard.NewBuilder(l)}
	for i := 1; i <= n; i++ {
		p.value(l.Get(i), 0)
	}
	l.Push(p.out.Value())
	return 1
}

// packer encodes values. It writes numbers as short as possible: integral numbers as integers, and
// others in four bytes if that loses no precision.
type packer struct {
	run *Runtime
	l   *glua.LState
	out sandbox.Builder
}

// headSize is the maximum length in bytes of an encoded value without the bytes of a string.
const headSize = 9

func (p *packer) value(v glua.LValue, level int) {
	p.run.Guard.Step(p.l, 1)
	out := &p.out
	switch v := v.(type) {
	case glua.LString:
		out.Grow(headSize + len(v))
		out.Buf = msgp.AppendString(out.Buf, string(v))
		return
	case *glua.LTable:
		if level < packLevels {
			p.table(p.run.Original(v), level+1)
			return
		}
	}
	out.Grow(headSize)
	switch v := v.(type) {
	case glua.LNumber:
		out.Buf = appendPacked(out.Buf, float64(v))
	case glua.LBool:
		out.Buf = msgp.AppendBool(out.Buf, bool(v))
	default:
		out.Buf = msgp.AppendNil(out.Buf)
	}
}

func appendPacked(b []byte, f float64) []byte {
	switch {
	case f >= -1<<63 && f < 1<<63 && f == math.Trunc(f):
		if f >= 0 {
			return msgp.AppendUint64(b, uint64(f))
		}
		return msgp.AppendInt64(b, int64(f))
	case f == float64(float32(f)):
		return msgp.AppendFloat32(b, float32(f))
	}
	return msgp.AppendFloat64(b, f)
}

// table encodes t as an array if its keys are 1 to n, and as a map otherwise.
func (p *packer) table(t *glua.LTable, level int) {
	count, isArray, highest := 0, true, 0.0
	t.ForEach(func(k, _ glua.LValue) {
		count++
		n, ok := k.(glua.LNumber)
		isArray = isArray && ok && n >= 1 && float64(n) == math.Trunc(float64(n))
		highest = max(highest, float64(n))
	})
	p.run.Guard.Step(p.l, count/8)
	p.out.Grow(headSize)
	if isArray && highest == float64(count) {
		p.out.Buf = msgp.AppendArrayHeader(p.out.Buf, uint32(count))
		for i := 1; i <= count; i++ {
			p.value(t.RawGet(glua.LNumber(i)), level)
		}
		return
	}
	p.out.Buf = msgp.AppendMapHeader(p.out.Buf, uint32(count))
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		p.value(k, level)
		p.value(v, level)
	}
}

func (r *Runtime) unpackAll(l *glua.LState) int {
	return r.unpacked(l, sandbox.CheckText(l, 1), 0, 0)
}

func (r *Runtime) unpackOne(l *glua.LState) int {
	from := sandbox.OptInt(l, 2, 0)
	return r.unpacked(l, sandbox.CheckText(l, 1), 1, int32(from))
}

func (r *Runtime) unpackLimit(l *glua.LState) int {
	most, from := sandbox.CheckInt(l, 2), sandbox.OptInt(l, 3, 0)
	return r.unpacked(l, sandbox.CheckText(l, 1), int32(most), int32(from))
}

// unpacked decodes up to most values of text from index from, which counts from 0, and pushes them.
// Before them it pushes the index of the first byte after them, or -1 if text ends with them. If
// most and from are 0, it decodes all values and pushes no index. It returns the number of pushed
// values.
func (r *Runtime) unpacked(l *glua.LState, text string, most, from int32) int {
	if from < 0 || most < 0 {
		sandbox.Raisef(l, "Invalid request to unpack with offset of %d and limit of %d.", from, len(text))
	}
	if int(from) > len(text) {
		sandbox.Raisef(l, "Start offset %d greater than input length %d.", from, len(text))
	}
	all := most == 0 && from == 0
	u := unpacker{run: r, l: l, rest: value.Bytes(text[from:])}
	var values []glua.LValue
	for len(u.rest) > 0 && (all || len(values) < int(most)) {
		v, err := u.value(1 + len(values))
		switch {
		case errors.Is(err, msgp.ErrShortBytes):
			sandbox.Raisef(l, errPackedShort)
		case err != nil:
			sandbox.Raisef(l, errPackedInvalid)
		}
		values = append(values, v)
	}
	if !all {
		place := int64(-1)
		if len(u.rest) > 0 {
			place = int64(len(text) - len(u.rest))
		}
		l.Push(value.Number(place))
	}
	for _, v := range values {
		l.Push(v)
	}
	if all {
		return len(values)
	}
	return 1 + len(values)
}

// unpacker decodes the values in rest. The decoded strings share the bytes of rest, which must not
// change.
type unpacker struct {
	run  *Runtime
	l    *glua.LState
	rest []byte
}

var errPackedType = errors.New("no such type")

// value decodes one value and returns it. top is the number of values that Lua in C would have on
// its stack. If top is too large, value raises an error, so that the nesting is bounded.
func (u *unpacker) value(top int) (v glua.LValue, err error) {
	u.run.Guard.Step(u.l, 1)
	if len(u.rest) == 0 {
		return nil, msgp.ErrShortBytes
	}
	if top+1 > cStack {
		sandbox.Raisef(u.l, errPackedMany)
	}
	switch b := u.rest; msgp.NextType(b) {
	case msgp.IntType:
		var n int64
		n, u.rest, err = msgp.ReadInt64Bytes(b)
		return value.Number(n), err
	case msgp.UintType:
		var n uint64
		n, u.rest, err = msgp.ReadUint64Bytes(b)
		return value.Number(int64(n)), err // numbers of 2^63 and more become negative, as in Redis
	case msgp.Float32Type:
		var f float32
		f, u.rest, err = msgp.ReadFloat32Bytes(b)
		return glua.LNumber(f), err
	case msgp.Float64Type:
		var f float64
		f, u.rest, err = msgp.ReadFloat64Bytes(b)
		return glua.LNumber(f), err
	case msgp.BoolType:
		var is bool
		is, u.rest, err = msgp.ReadBoolBytes(b)
		return glua.LBool(is), err
	case msgp.NilType:
		u.rest, err = msgp.ReadNilBytes(b)
		return glua.LNil, err
	case msgp.StrType:
		var text []byte
		text, u.rest, err = msgp.ReadStringZC(b)
		return glua.LString(value.View(text)), err
	case msgp.ArrayType:
		return u.array(top + 1)
	case msgp.MapType:
		return u.mapping(top + 1)
	}
	return nil, errPackedType
}

// array decodes an array. It does not trust the count in the head: the table grows with the decoded
// elements.
func (u *unpacker) array(top int) (glua.LValue, error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(u.rest)
	if err != nil {
		return nil, err
	}
	u.rest = rest
	if top+1 > cStack {
		sandbox.Raisef(u.l, errPackedDeep)
	}
	t := u.l.CreateTable(0, 0)
	for i := range n {
		v, err := u.value(top + 1)
		if err != nil {
			return nil, err
		}
		if i < value.ArrayMax-1 {
			t.RawSetInt(int(i)+1, v)
		} else {
			t.RawSet(glua.LNumber(i+1), v)
		}
	}
	return t, nil
}

func (u *unpacker) mapping(top int) (glua.LValue, error) {
	n, rest, err := msgp.ReadMapHeaderBytes(u.rest)
	if err != nil {
		return nil, err
	}
	u.rest = rest
	t := u.l.CreateTable(0, 0)
	for range n {
		k, err := u.value(top)
		if err != nil {
			return nil, err
		}
		v, err := u.value(top + 1)
		if err != nil {
			return nil, err
		}
		if f, ok := k.(glua.LNumber); ok && math.IsNaN(float64(f)) {
			sandbox.Throw(u.l, "table index is NaN")
		}
		if k == glua.LNil {
			sandbox.Throw(u.l, "table index is nil")
		}
		t.RawSet(k, v)
	}
	return t, nil
}
