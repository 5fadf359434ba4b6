package lua_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/lua"
)

// TestMessagesOfScriptsComeBackAsTheyWent: cmsgpack unpacks a packed value to an equal one, and
// packs that to the same bytes.
func TestMessagesOfScriptsComeBackAsTheyWent(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	for _, value := range []string{
		"nil", "true", "0", "-1", "255", "65536", "2^53", "-2^53", "0.1", "1e300", "''", "'text'", "('x'):rep(70000)",
		"{}", "{1, 2, {3, {}}}", "{a = {b = 1}}", "{[10] = 1}", "{[-1] = 'x'}",
	} {
		require.Equal(t, ":1\r\n", runIn(pool, "local m = cmsgpack.pack("+value+") return m == cmsgpack.pack(cmsgpack.unpack(m))"), value)
	}
}

// TestForgedMessagesTakeNoMemory: a message that claims four billion elements takes memory only for
// those that it contains.
func TestForgedMessagesTakeNoMemory(t *testing.T) {
	effort.Alone(t)
	pool := lua.NewPool(lua.DefaultLimits())
	for _, message := range []string{
		`\221\255\255\255\255`, `\223\255\255\255\255`, `\219\255\255\255\255`, `\145\221\255\255\255\255\1`, `\220\255\255`,
	} {
		before := allocatedNow()
		require.Contains(t, runIn(pool, "return cmsgpack.unpack('"+message+"')"), "Missing bytes in input.", message)
		require.Less(t, allocatedNow()-before, int64(4*mib), message)
	}
	bush := "local t = {} for i = 1, 15 do t = {t, t, t, t} end return #cmsgpack.pack(t)"
	require.Contains(t, runIn(pool, bush), "too long")
	limits := lua.DefaultLimits()
	limits.Memory = 32 * mib
	empties := "local m = '\\221\\0\\128\\0\\0' .. ('\\144'):rep(8388608) local t = {} for i = 1, 100 do t[i] = cmsgpack.unpack(m) end return #t"
	require.Contains(t, runIn(lua.NewPool(limits), empties), notEnough)
}

// FuzzUnpack: for arbitrary bytes unpack returns values or one of its errors. The values can be
// packed and unpacked again without losing one.
func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{"", "\x01", "\xc1", "\x91\x01", "\x81\xa1a\x01", "\xdd\xff\xff\xff\xff", "\xcb\x00", "\xd9\x05abc", "\x93\xc0\xc2\xc3"} {
		f.Add([]byte(seed))
	}
	pool := lua.NewPool(lua.DefaultLimits())
	const source = `local function all(n, ...) if n > 0 then return n, select('#', cmsgpack.unpack(cmsgpack.pack(...))) == n end return n, true end
local n, same = all(select('#', cmsgpack.unpack(ARGV[1])), cmsgpack.unpack(ARGV[1]))
return {n, tostring(same)}`
	f.Fuzz(func(t *testing.T, message []byte) {
		reply := runIn(pool, source, string(message))
		if strings.HasPrefix(reply, "-") {
			for _, known := range []string{"Missing bytes", "Bad data format", "table index is", "stack overflow (", "Too many arguments", "not enough memory"} {
				if strings.Contains(reply, known) {
					return
				}
			}
			t.Fatalf("%q", reply)
		}
		require.Regexp(t, `^\*2\r\n:\d+\r\n\$\d+\r\ntrue\r\n$`, reply)
	})
}
