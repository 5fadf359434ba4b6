package lua

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/resp"
)

// TestResultIsMeasuredAsItIsWritten: the memory reserved for a large reply is the memory that it
// takes, or a little more, whatever it contains.
func TestResultIsMeasuredAsItIsWritten(t *testing.T) {
	r := newRun(sandbox.NewMemory(DefaultLimits()))
	defer r.close()
	tableOf := func(name string, v glua.LValue) *glua.LTable {
		table := r.sandbox.L.NewTable()
		table.RawSetString(name, v)
		return table
	}
	row := func(values ...glua.LValue) *glua.LTable {
		table := r.sandbox.L.NewTable()
		for _, v := range values {
			table.Append(v)
		}
		return table
	}
	long := glua.LString(strings.Repeat("x", 1000))
	verbatim := tableOf("string", long)
	verbatim.RawSetString("format", glua.LString("markdown"))
	deep := row()
	for range maxDepth {
		deep = row(deep)
	}
	for name, v := range map[string]glua.LValue{
		"nil": glua.LNil, "true": glua.LTrue, "false": glua.LFalse, "function": r.sandbox.L.NewFunction(nil),
		"number": glua.LNumber(math.MinInt64), "zero": glua.LNumber(0), "fraction": glua.LNumber(-0.9),
		"text": long, "no text": glua.LString(""), "row": row(long, glua.LTrue, row(), row(glua.LNumber(-1))), "deep": deep,
		"error": tableOf("err", long), "status": tableOf("ok", long),
		"double": tableOf("double", glua.LNumber(-math.SmallestNonzeroFloat64)), "half": tableOf("double", glua.LNumber(-2.2250738585072014e-308)),
		"map": tableOf("map", tableOf("key", long)), "set": tableOf("set", tableOf("key", glua.LTrue)),
		"big number": tableOf("big_number", "1\n\xff"+long), "verbatim": tableOf("verbatim_string", verbatim),
	} {
		for _, proto := range []int{2, 3} {
			var w resp.Writer
			w.Proto = proto
			out := r.replier(&w, proto)
			v := row(v, glua.LTrue, v)
			out.value(v, 0)
			require.Empty(t, out.failed, name)
			size := out.size(v, 0)
			require.GreaterOrEqual(t, size, len(w.Buf), "%s in RESP%d", name, proto)
			require.LessOrEqual(t, size, len(w.Buf)+len(w.Buf)/8+5*lineSize, "%s in RESP%d", name, proto)
		}
	}
}

// TestBigNumberKeepsItsBytes: only line ends are replaced, as in Redis.
func TestBigNumberKeepsItsBytes(t *testing.T) {
	r := newRun(sandbox.NewMemory(DefaultLimits()))
	defer r.close()
	for proto, want := range map[int]string{2: "$4\r\n\xff 1 \r\n", 3: "(\xff 1 \r\n"} {
		w := resp.Writer{Proto: proto}
		out := r.replier(&w, proto)
		out.bigNumber("\xff\r1\n")
		require.Equal(t, want, string(w.Buf))
	}
}
