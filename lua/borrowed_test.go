package lua_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// kept ignores the bytes that only replies keep.
type kept struct{}

func (kept) Count(int64) {}

// TestRepliesDoNotReferToArguments: the bytes of KEYS and ARGV are reused after the script, so its
// reply has copies of them, also of parts. The reply refers to strings that the script has created.
func TestRepliesDoNotReferToArguments(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	for source, refs := range map[string]int{
		"return ARGV[1]": 0,
		"return KEYS[1]": 0,
		"local function f(x) return x end return f(ARGV[1])":                            0,
		"return {ARGV[1]:sub(2), KEYS[1], {ARGV[1]:match('b+')}}":                       0,
		"return {verbatim_string = {format = 'txt', string = ARGV[1]}}":                 0,
		"return {big_number = ARGV[1]}":                                                 0,
		"return ('x'):rep(40000)":                                                       1,
		"return {ARGV[1] .. 'x', ARGV[1], ('x'):rep(40000)}":                            2,
		"return {verbatim_string = {format = 'txt', string = ('x'):rep(40000)}}":        1,
		"return cmsgpack.unpack(ARGV[2])":                                               0,
		"local s = ('x'):rep(40000) return {s, {s}, cmsgpack.unpack(cmsgpack.pack(s))}": 3,
	} {
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err)
		long := bytes.Repeat([]byte("b"), 40000)
		packed := append([]byte{0xda, 0x9c, 0x40}, long...)
		r := pool.Get()
		w := resp.Writer{Proto: 2, Ledger: kept{}}
		r.Execute(script, [][]byte{bytes.Clone(long)}, [][]byte{long, packed}, &echo{}, &w)
		pool.Put(r)
		require.NotEqual(t, byte('-'), w.Buf[0], source)
		require.Len(t, w.Refs, refs, source)
	}
}
