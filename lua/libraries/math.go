package libraries

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

func (r *Runtime) mathLibrary() map[string]glua.LGFunction {
	functions := map[string]glua.LGFunction{
		"atan2": mathBinary(math.Atan2), "fmod": mathBinary(math.Mod), "mod": mathBinary(math.Mod), "pow": mathBinary(math.Pow),
		"frexp": frexp, "ldexp": ldexp, "max": extreme(func(a, b float64) bool { return a > b }),
		"min": extreme(func(a, b float64) bool { return a < b }), "modf": modf,
		"random": r.mathRandom, "randomseed": r.randomSeed,
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil,
		"cos": math.Cos, "cosh": math.Cosh, "deg": func(x float64) float64 { return x / (math.Pi / 180) },
		"exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": log10,
		"rad": func(x float64) float64 { return x * (math.Pi / 180) }, "sin": math.Sin, "sinh": math.Sinh,
		"sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
	} {
		functions[name] = mathUnary(f)
	}
	return functions
}

// log10 returns the decimal logarithm of x. Unlike math.Log10 it is exact for powers of ten: with a
// result just below 15, a script that truncates would give 1e15 fifteen digits.
func log10(x float64) float64 {
	l := math.Log10(x)
	if whole := math.Round(l); math.Abs(whole) < 400 && math.Pow10(int(whole)) == x {
		return whole
	}
	return l
}

func mathUnary(f func(float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		l.Push(value.FromFloat(f(sandbox.CheckNumber(l, 1))))
		return 1
	}
}

func mathBinary(f func(a, b float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		l.Push(value.FromFloat(f(sandbox.CheckNumber(l, 1), sandbox.CheckNumber(l, 2))))
		return 1
	}
}

func extreme(better func(a, b float64) bool) glua.LGFunction {
	return func(l *glua.LState) int {
		best := sandbox.CheckNumber(l, 1)
		for i := 2; i <= l.GetTop(); i++ {
			if f := sandbox.CheckNumber(l, i); better(f, best) {
				best = f
			}
		}
		l.Push(value.FromFloat(best))
		return 1
	}
}

func frexp(l *glua.LState) int {
	fraction, exponent := math.Frexp(sandbox.CheckNumber(l, 1))
	l.Push(glua.LNumber(fraction))
	l.Push(value.Number(int64(exponent)))
	return 2
}

func ldexp(l *glua.LState) int {
	exponent := min(max(sandbox.CheckInt(l, 2), -1<<20), 1<<20)
	l.Push(value.FromFloat(math.Ldexp(sandbox.CheckNumber(l, 1), int(exponent))))
	return 1
}

func modf(l *glua.LState) int {
	f := sandbox.CheckNumber(l, 1)
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		fraction = 0
	}
	l.Push(value.FromFloat(whole))
	l.Push(value.FromFloat(fraction))
	return 2
}

func (r *Runtime) randomSeed(l *glua.LState) int {
	r.random.seed(int32(sandbox.CheckInt(l, 1)))
	return 0
}

func (r *Runtime) mathRandom(l *glua.LState) int {
	// The generator's number is a C int. Taking it modulo its maximum keeps the fraction below 1.
	fraction := float64(r.random.next()%randomMax) / randomMax
	low, high := int64(1), int64(0)
	switch l.GetTop() {
	case 0:
		l.Push(glua.LNumber(fraction))
		return 1
	case 1:
		high = int64(int32(sandbox.CheckInt(l, 1)))
		if high < 1 {
			sandbox.ArgError(l, 1, "interval is empty")
		}
	case 2:
		low, high = int64(int32(sandbox.CheckInt(l, 1))), int64(int32(sandbox.CheckInt(l, 2)))
		if low > high {
			sandbox.ArgError(l, 2, "interval is empty")
		}
	default:
		sandbox.Raisef(l, "wrong number of arguments")
	}
	l.Push(value.FromFloat(math.Floor(fraction*float64(high-low+1)) + float64(low)))
	return 1
}
