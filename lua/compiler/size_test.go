package compiler_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua/compiler"
)

// TestSizeIsWhatAScriptTakes: the reported size of a script differs from its size on the heap by at
// most a third. It is a few times the length of the text and does not include the compiler's
// temporary memory.
func TestSizeIsWhatAScriptTakes(t *testing.T) {
	for name, body := range map[string]string{
		"comment":   "-- " + strings.Repeat("x", 1000),
		"calls":     strings.Repeat("redis.call('set', KEYS[1], ARGV[1]) ", 27),
		"sums":      strings.Repeat("a = a + 1 ", 100),
		"constants": "return {" + strings.Repeat("'some text', ", 80) + "}",
		"functions": strings.Repeat("local function f() return a end ", 30),
	} {
		const n = 200
		scripts := make([]*compiler.Script, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		said := 0
		for i := range scripts {
			s, err := compiler.Compile(fmt.Appendf(nil, "local a = %d %s", i, body))
			require.NoError(t, err)
			scripts[i], said = s, said+s.Size()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		taken := int(after.HeapAlloc) - int(before.HeapAlloc)
		require.InEpsilon(t, taken+n*512, said+n*512, 0.34, "%s: %d said, %d taken", name, said/n, taken/n)
		require.Less(t, said/n, 32<<10, name)
		runtime.KeepAlive(scripts)
	}
}
