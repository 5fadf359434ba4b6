package libraries

import (
	"encoding/binary"
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// structLibrary returns the functions of the library struct, which packs numbers and strings into
// bytes by a format. Sizes are the same as in C on x86-64.
func (r *Runtime) structLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{"pack": r.structPack, "unpack": r.structUnpack, "size": structSize}
}

const (
	maxIntegerSize = 32
	maxAlignment   = 8
)

// layout iterates over the items of a format.
type layout struct {
	l      *glua.LState
	format string
	at     int
	big    bool
	align  int
	// total is the number of bytes before the present item, from which next computes the padding.
	total int
}

// item is one letter of a format, with its size and the padding in front of it in bytes.
type item struct {
	letter    byte
	size, pad int
}

func newLayout(l *glua.LState) *layout {
	return &layout{l: l, format: sandbox.CheckText(l, 1), align: 1}
}

// digits reads a decimal number at the present place of the format. If there is none, it returns
// otherwise.
func (f *layout) digits(otherwise int) int {
	if f.at >= len(f.format) || !value.IsDigit(f.format[f.at]) {
		return otherwise
	}
	n := 0
	for f.at < len(f.format) && value.IsDigit(f.format[f.at]) {
		if n > math.MaxInt32/10-10 {
			sandbox.Raisef(f.l, "integral size overflow")
		}
		n = n*10 + int(f.format[f.at]-'0')
		f.at++
	}
	return n
}

// next returns the next item. It executes letters that only change the settings, such as ">". The
// second result is false at the end of the format.
func (f *layout) next() (item, bool) {
	for f.at < len(f.format) {
		letter := f.format[f.at]
		f.at++
		switch letter {
		case ' ':
		case '>':
			f.big = true
		case '<':
			f.big = false
		case '!':
			f.align = f.digits(maxAlignment)
			if f.align == 0 || f.align&(f.align-1) != 0 {
				sandbox.Raisef(f.l, "alignment is not a power of 2")
			}
		default:
			it := item{letter: letter, size: f.size(letter)}
			if it.size > 0 && letter != 'c' {
				to := min(it.size, f.align)
				it.pad = (to - f.total&(to-1)) & (to - 1)
			}
			return it, true
		}
	}
	return item{}, false
}

func (f *layout) size(letter byte) int {
	switch letter {
	case 'b', 'B', 'x':
		return 1
	case 'h', 'H':
		return 2
	case 'f':
		return 4
	case 'l', 'L', 'T', 'd':
		return 8
	case 'c':
		return f.digits(1)
	case 's':
		return 0
	case 'i', 'I':
		n := f.digits(4)
		if n < 1 || n > maxIntegerSize {
			sandbox.Raisef(f.l, "integral size %d is larger than limit of %d", n, maxIntegerSize)
		}
		return n
	}
	sandbox.ArgError(f.l, 1, "invalid format option '"+string(rune(letter))+"'")
	return 0
}

func (r *Runtime) structPack(l *glua.LState) int {
	f := newLayout(l)
	b := r.Guard.NewBuilder(l)
	arg := 1
	for {
		f.total = b.Len()
		it, ok := f.next()
		if !ok {
			break
		}
		for range it.pad {
			b.Put(0)
		}
		if it.letter == 'x' {
			b.Put(0)
			continue
		}
		arg++
		r.packItem(f, &b, it, arg)
		r.Guard.Step(l, 1)
	}
	l.Push(b.Value())
	return 1
}

func (r *Runtime) packItem(f *layout, b *sandbox.Builder, it item, arg int) {
	switch it.letter {
	case 'f':
		b.Write(f.order(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(sandbox.CheckNumber(f.l, arg))))))
	case 'd':
		b.Write(f.order(binary.LittleEndian.AppendUint64(nil, math.Float64bits(sandbox.CheckNumber(f.l, arg)))))
	case 'c', 's':
		text := sandbox.CheckText(f.l, arg)
		size := it.size
		if size == 0 {
			size = len(text)
		}
		if len(text) < size {
			sandbox.ArgError(f.l, arg+1, "string too short")
		}
		b.WriteString(text[:size])
		if it.letter == 's' {
			b.Put(0)
		}
	default:
		b.Write(f.order(integerBytes(sandbox.CheckNumber(f.l, arg), it.size)))
	}
}

// order converts between little-endian bytes and the byte order of the format. It may reverse b in
// place.
func (f *layout) order(b []byte) []byte {
	if f.big {
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return b
}

// integerBytes returns n, converted to an integer of 64 bits as C on x86-64 does, in size
// little-endian bytes. Bytes beyond eight are zero.
func integerBytes(n float64, size int) []byte {
	var u uint64
	if n < 0 {
		u = uint64(value.Truncate(n))
	} else {
		u = toUnsigned(n)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(u)
		u >>= 8
	}
	return b
}

func (r *Runtime) structUnpack(l *glua.LState) int {
	f := newLayout(l)
	data := sandbox.CheckText(l, 2)
	at := int(sandbox.OptInt(l, 3, 1)) - 1
	if at < 0 {
		sandbox.ArgError(l, 3, "offset must be 1 or greater")
	}
	results := []glua.LValue{}
	for {
		f.total = at
		it, ok := f.next()
		if !ok {
			break
		}
		at += it.pad
		if it.size > len(data) || at > len(data)-it.size {
			sandbox.ArgError(l, 2, "data string too short")
		}
		switch it.letter {
		case 'x':
			at++
			continue
		case 'c', 's':
			var v string
			v, at, results = f.text(data, at, it, results)
			results = append(results, glua.LString(v))
		default:
			results = append(results, f.number(data[at:at+it.size], it))
			at += it.size
		}
		r.Guard.Step(l, 1)
		if len(results) >= maxUnpack {
			sandbox.Raisef(l, "too many results to unpack")
		}
	}
	for _, v := range results {
		l.Push(v)
	}
	l.Push(value.Number(int64(at) + 1))
	return len(results) + 1
}

// text reads a string from data at the index at. it is the item of the format for the string. text
// returns the string, the index after it, and results. For the format c0 it takes the length of the
// string from the last of results, and removes that. It raises an error if data ends before the
// string does.
func (f *layout) text(data string, at int, it item, results []glua.LValue) (string, int, []glua.LValue) {
	if it.letter == 's' {
		i := strings.IndexByte(data[at:], 0)
		if i < 0 {
			sandbox.Raisef(f.l, "unfinished string in data")
		}
		return data[at : at+i], at + i + 1, results
	}
	size := it.size
	if size == 0 {
		n, ok := glua.LNumber(0), false
		if len(results) > 0 {
			n, ok = results[len(results)-1].(glua.LNumber)
		}
		if !ok {
			sandbox.Raisef(f.l, "format 'c0' needs a previous size")
		}
		results = results[:len(results)-1]
		if n < 0 || float64(n) > float64(len(data)-at) {
			sandbox.ArgError(f.l, 2, "data string too short")
		}
		size = int(n)
	}
	return data[at : at+size], at + size, results
}

func (f *layout) number(data string, it item) glua.LValue {
	b := f.order([]byte(data))
	switch it.letter {
	case 'f':
		return value.FromFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case 'd':
		return value.FromFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	var u uint64
	for i := min(len(b), 8) - 1; i >= 0; i-- {
		u = u<<8 | uint64(b[i])
	}
	signed := it.letter >= 'a' // the letters b, h, l and i stand for signed numbers
	if !signed {
		return value.FromFloat(float64(u))
	}
	if unused := 64 - 8*len(b); unused > 0 {
		return value.FromFloat(float64(int64(u<<unused) >> unused))
	}
	return value.FromFloat(float64(int64(u)))
}

func structSize(l *glua.LState) int {
	f := newLayout(l)
	for {
		it, ok := f.next()
		if !ok {
			break
		}
		switch {
		case it.letter == 's':
			sandbox.ArgError(l, 1, "option 's' has no fixed size")
		case it.letter == 'c' && it.size == 0:
			sandbox.ArgError(l, 1, "option 'c0' has no fixed size")
		}
		f.total += it.pad + it.size
	}
	l.Push(value.Number(int64(f.total)))
	return 1
}
