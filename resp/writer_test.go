package resp_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/resp"
)

// written returns the output of write in the given protocol.
func written(proto int, write func(*resp.Writer)) string {
	w := resp.Writer{Proto: proto}
	write(&w)
	return string(w.Buf)
}

func TestWriterSpellsEveryReplyInBothProtocols(t *testing.T) {
	cases := map[string]struct {
		write func(*resp.Writer)
		resp2 string
		resp3 string
	}{
		"ok":            {func(w *resp.Writer) { w.OK() }, "+OK\r\n", "+OK\r\n"},
		"status":        {func(w *resp.Writer) { w.Status("PONG") }, "+PONG\r\n", "+PONG\r\n"},
		"error":         {func(w *resp.Writer) { w.Error(resp.ErrSyntax) }, "-ERR syntax error\r\n", "-ERR syntax error\r\n"},
		"int":           {func(w *resp.Writer) { w.Int(-42) }, ":-42\r\n", ":-42\r\n"},
		"bulk":          {func(w *resp.Writer) { w.Bulk([]byte("a\r\nb\x00")) }, "$5\r\na\r\nb\x00\r\n", "$5\r\na\r\nb\x00\r\n"},
		"bulk nil":      {func(w *resp.Writer) { w.Bulk(nil) }, "$0\r\n\r\n", "$0\r\n\r\n"},
		"bulk string":   {func(w *resp.Writer) { w.BulkString("hello") }, "$5\r\nhello\r\n", "$5\r\nhello\r\n"},
		"array":         {func(w *resp.Writer) { w.Array(12) }, "*12\r\n", "*12\r\n"},
		"array empty":   {func(w *resp.Writer) { w.Array(0) }, "*0\r\n", "*0\r\n"},
		"map":           {func(w *resp.Writer) { w.Map(7) }, "*14\r\n", "%7\r\n"},
		"set":           {func(w *resp.Writer) { w.Set(3) }, "*3\r\n", "~3\r\n"},
		"push":          {func(w *resp.Writer) { w.Push(2) }, "*2\r\n", ">2\r\n"},
		"null":          {func(w *resp.Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
		"null array":    {func(w *resp.Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
		"true":          {func(w *resp.Writer) { w.Bool(true) }, ":1\r\n", "#t\r\n"},
		"false":         {func(w *resp.Writer) { w.Bool(false) }, ":0\r\n", "#f\r\n"},
		"verbatim":      {func(w *resp.Writer) { w.Verbatim("txt", "Some") }, "$4\r\nSome\r\n", "=8\r\ntxt:Some\r\n"},
		"verbatim long": {func(w *resp.Writer) { w.Verbatim("markdown", "") }, "$0\r\n\r\n", "=4\r\nmar:\r\n"},
		"verbatim odd":  {func(w *resp.Writer) { w.Verbatim("t", "x") }, "$1\r\nx\r\n", "=5\r\nt  :x\r\n"},
		"double":        {func(w *resp.Writer) { w.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
		"raw":           {func(w *resp.Writer) { w.Raw([]byte("+x\r\n")) }, "+x\r\n", "+x\r\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.resp2, written(2, c.write))
			require.Equal(t, c.resp3, written(3, c.write))
			require.Equal(t, c.resp2, written(0, c.write), "the zero Writer speaks RESP2")
		})
	}
}

func TestWriterNeverLetsALineEndThrough(t *testing.T) {
	// CVE-2025-67733: text from a client inside an error could forge a second reply.
	require.Equal(t, "-ERR unknown command 'a  +OK'\r\n",
		written(2, func(w *resp.Writer) { w.Error("ERR unknown command 'a\r\n+OK'") }))
	require.Equal(t, "-ERR a b\r\n", written(2, func(w *resp.Writer) { w.Error("ERR a\nb\r\n\n") }))
	require.Equal(t, "+a  b\r\n", written(2, func(w *resp.Writer) { w.Status("a\r\nb") }))

	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.SampledFrom([]byte("\r\na'"))).Draw(t, "text"))
		for _, reply := range []string{
			written(2, func(w *resp.Writer) { w.Error(resp.Error(text)) }),
			written(3, func(w *resp.Writer) { w.Status(text) }),
		} {
			require.NotContains(t, reply[:len(reply)-2], "\r")
			require.NotContains(t, reply[:len(reply)-2], "\n")
		}
	})
}

func TestWriterSpellsDoublesAsRedis72(t *testing.T) {
	for text, f := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "3": 3, "-3": -3,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN(),
		"0.1": 0.1, "-0.1": -0.1, "0.30000000000000004": 0.30000000000000004, "3.141592653589793": math.Pi,
		"0.000001": 1e-6, "1e-7": 1e-7, "1.5e-7": 1.5e-7, "0.0015625": 0.0015625,
		"1234.5678901": 1234.5678901, "1.23456789012e+4": 12345.6789012,
		"4611686018427387904": 1 << 62, "9223372036854775000": 9223372036854775000, "5e+18": 5e18, "1e+20": 1e20,
		"1.7976931348623157e+308": math.MaxFloat64, "5e-324": math.SmallestNonzeroFloat64,
		"-2.2250738585072014e-308": -2.2250738585072014e-308,
	} {
		t.Run(text, func(t *testing.T) {
			require.Equal(t, ","+text+"\r\n", written(3, func(w *resp.Writer) { w.Double(f) }))
			require.Equal(t, "$"+strconv.Itoa(len(text))+"\r\n"+text+"\r\n", written(2, func(w *resp.Writer) { w.Double(f) }))
		})
	}
}

func TestWriterDoublesReadBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1e6, 1e6), rapid.Float64Range(-1e-3, 1e-3)).Draw(t, "f")
		reply := written(3, func(w *resp.Writer) { w.Double(f) })
		back, err := strconv.ParseFloat(reply[1:len(reply)-2], 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(f), math.Float64bits(back), reply)
	})
}

func TestFiveIntsEqualsAnArrayOfInts(t *testing.T) {
	edges := []int64{0, 1, -1, math.MinInt64, math.MaxInt64}
	for power := int64(10); power > 0 && power < math.MaxInt64/10; power *= 10 {
		edges = append(edges, power-1, power, power+1, -power, 1-power)
	}
	for shift := range 63 {
		edges = append(edges, 1<<shift, 1<<shift-1)
	}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.OneOf(rapid.SampledFrom(edges), rapid.Int64())
		n := rapid.SliceOfN(one, 5, 5).Draw(t, "n")
		proto := rapid.SampledFrom([]int{2, 3}).Draw(t, "proto")
		want := written(proto, func(w *resp.Writer) {
			w.Status("before")
			w.Array(5)
			for _, i := range n {
				w.Int(i)
			}
		})
		require.Equal(t, want, written(proto, func(w *resp.Writer) {
			w.Status("before")
			w.FiveInts(n[0], n[1], n[2], n[3], n[4])
		}))
	})
	for _, i := range edges {
		want := written(2, func(w *resp.Writer) {
			w.Array(5)
			w.Int(i)
			w.Int(0)
			w.Int(0)
			w.Int(0)
			w.Int(0)
		})
		require.Equal(t, want, written(2, func(w *resp.Writer) { w.FiveInts(i, 0, 0, 0, 0) }))
	}
}

func TestWriterAllocatesNothing(t *testing.T) {
	for _, proto := range []int{2, 3} {
		w := resp.Writer{Buf: make([]byte, 0, 4096), Proto: proto}
		bulk := []byte("bulk")
		require.Zero(t, testing.AllocsPerRun(100, func() {
			w.Buf = w.Buf[:0]
			w.OK()
			w.Status("PONG")
			w.Error(resp.ErrSyntax)
			w.Int(math.MinInt64)
			w.Bulk(bulk)
			w.BulkString("string")
			w.Array(3)
			w.Map(300)
			w.Set(3)
			w.Push(2)
			w.Null()
			w.NullArray()
			w.Bool(true)
			w.Verbatim("txt", "text")
			w.Double(12345.678e-30)
			w.Raw(bulk)
			w.FiveInts(0, 16, 15, -1, math.MaxInt64)
		}))
	}
}

func BenchmarkFiveInts(b *testing.B) {
	w := resp.Writer{Buf: make([]byte, 0, 256)}
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		w.FiveInts(0, 16, 15, -1, 2)
	}
}

// BenchmarkFiveIntsByParts measures what FiveInts replaces.
func BenchmarkFiveIntsByParts(b *testing.B) {
	w := resp.Writer{Buf: make([]byte, 0, 256)}
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		w.Array(5)
		w.Int(0)
		w.Int(16)
		w.Int(15)
		w.Int(-1)
		w.Int(2)
	}
}

func TestAppendCommand(t *testing.T) {
	require.Equal(t, "a*2\r\n$3\r\nGET\r\n$4\r\n\r\n\x00k\r\n", string(resp.AppendCommand([]byte("a"), "GET", "\r\n\x00k")))
	require.Equal(t, "*1\r\n$0\r\n\r\n", string(resp.AppendCommand(nil, []byte{})))
	require.Equal(t, "*0\r\n", string(resp.AppendCommand[string](nil)))
}
