package libraries

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// bitLibrary returns the functions of LuaBitOp. Every numeric result is a signed number of 32 bits.
func (r *Runtime) bitLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{
		"tobit":   bitUnary(func(a uint32) uint32 { return a }),
		"bnot":    bitUnary(func(a uint32) uint32 { return ^a }),
		"bswap":   bitUnary(bits.ReverseBytes32),
		"band":    bitFold(func(a, b uint32) uint32 { return a & b }),
		"bor":     bitFold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    bitFold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  bitShift(func(a uint32, n uint) uint32 { return a << n }),
		"rshift":  bitShift(func(a uint32, n uint) uint32 { return a >> n }),
		"arshift": bitShift(func(a uint32, n uint) uint32 { return uint32(int32(a) >> n) }),
		"rol":     bitShift(func(a uint32, n uint) uint32 { return bits.RotateLeft32(a, int(n)) }),
		"ror":     bitShift(func(a uint32, n uint) uint32 { return bits.RotateLeft32(a, -int(n)) }),
		"tohex":   bitHex,
	}
}

// bitArgument returns argument i modulo 2^32. It rounds halves to even, and returns 0 for NaN and
// infinities.
func bitArgument(l *glua.LState, i int) uint32 {
	f := math.RoundToEven(sandbox.CheckNumber(l, i))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	if math.Abs(f) < 1<<62 {
		return uint32(int64(f))
	}
	return uint32(int64(math.Mod(f, 1<<32)))
}

func pushBits(l *glua.LState, n uint32) int {
	l.Push(value.Number(int64(int32(n))))
	return 1
}

func bitUnary(f func(uint32) uint32) glua.LGFunction {
	return func(l *glua.LState) int { return pushBits(l, f(bitArgument(l, 1))) }
}

func bitFold(f func(a, b uint32) uint32) glua.LGFunction {
	return func(l *glua.LState) int {
		n := bitArgument(l, 1)
		for i := 2; i <= l.GetTop(); i++ {
			n = f(n, bitArgument(l, i))
		}
		return pushBits(l, n)
	}
}

func bitShift(f func(a uint32, n uint) uint32) glua.LGFunction {
	return func(l *glua.LState) int {
		a := bitArgument(l, 1)
		return pushBits(l, f(a, uint(bitArgument(l, 2)&31)))
	}
}

func bitHex(l *glua.LState) int {
	n, digits := bitArgument(l, 1), int32(8)
	if l.Get(2) != glua.LNil {
		digits = int32(bitArgument(l, 2))
	}
	upper := digits < 0
	if upper {
		digits = -digits
	}
	width := int(min(uint32(digits), 8))
	text := strings.Repeat("0", 8) + strconv.FormatUint(uint64(n), 16)
	text = text[len(text)-width:]
	if upper {
		text = strings.ToUpper(text)
	}
	l.Push(glua.LString(text))
	return 1
}
