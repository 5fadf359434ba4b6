package scripting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/effort"
)

// named returns a script that has only a name and a cost.
func named(n int, cost int64) *script {
	s := &script{cost: cost}
	copy(s.sha[:], fmt.Sprintf("%040d", n))
	return s
}

func nameOf(n int) scriptSHA { return named(n, 0).sha }

// TestScriptCacheForgetsWhatIsNotUsed: scripts of EVAL are evicted beyond the bounds of their
// number and bytes, recently used ones last. Loaded scripts stay, and are refused once they fill
// the cache.
func TestScriptCacheForgetsWhatIsNotUsed(t *testing.T) {
	var sc scriptCache
	_, err := sc.add(named(0, 1), true)
	require.Empty(t, err)
	for i := 1; i <= maxEvalScripts; i++ {
		_, err := sc.add(named(i, 1), false)
		require.Empty(t, err)
	}
	require.NotNil(t, sc.get(nameOf(1)))
	before := sc.flushed.Load()
	for i := range 10 {
		_, err := sc.add(named(maxEvalScripts+1+i, 1), false)
		require.Empty(t, err)
	}
	n, bytes := sc.size()
	require.Equal(t, 1+maxEvalScripts, n)
	require.EqualValues(t, 1+maxEvalScripts, bytes)
	require.EqualValues(t, 10, sc.evicted.Load())
	require.Greater(t, sc.flushed.Load(), before, "workers look again")
	require.NotNil(t, sc.get(nameOf(0)), "loaded")
	require.NotNil(t, sc.get(nameOf(1)), "used")
	require.Nil(t, sc.get(nameOf(2)))

	_, err = sc.add(named(-1, maxScriptBytes-1), true)
	require.Empty(t, err)
	n, bytes = sc.size()
	require.Equal(t, 2, n, "the loaded ones")
	require.EqualValues(t, maxScriptBytes, bytes)
	_, err = sc.add(named(-2, 2), true)
	require.Equal(t, errScriptsFull, err)
	s, err := sc.add(named(-3, 2), false)
	require.Empty(t, err)
	require.NotNil(t, s, "it runs, but is not kept")
	require.Nil(t, sc.get(nameOf(-3)))

	sc.flush()
	n, bytes = sc.size()
	require.Zero(t, n)
	require.Zero(t, bytes)
}

// TestScriptCacheTakesManyScriptsOfAKilobyte: the memory of compiled scripts is counted, and is
// small enough for thousands of scripts of common length.
func TestScriptCacheTakesManyScriptsOfAKilobyte(t *testing.T) {
	effort.Alone(t)
	e := newEngine(&command.Server{Commands: command.NewTable(nil)})
	body := strings.Repeat("redis.call('SET', KEYS[1], ARGV[1]) ", 6) + "--" + strings.Repeat("x", 780)
	for i := range 5000 {
		_, err := e.compile(fmt.Appendf(nil, "local n = %d %s", i, body), true)
		require.Empty(t, err, i)
	}
	for i := range 2 * maxEvalScripts {
		_, err := e.compile(fmt.Appendf(nil, "return %d", i), false)
		require.Empty(t, err, i)
	}
	n, _ := e.scripts.size()
	require.Equal(t, 5000+maxEvalScripts, n)
	require.EqualValues(t, maxEvalScripts, e.scripts.evicted.Load())
}

// TestLoadingKeepsAScript: a script that EVAL has added is permanent once it is loaded.
func TestLoadingKeepsAScript(t *testing.T) {
	var sc scriptCache
	first, _ := sc.add(named(0, 1), false)
	again, err := sc.add(named(0, 1), true)
	require.Empty(t, err)
	require.Same(t, first, again)
	for i := 1; i < 2*maxEvalScripts; i++ {
		_, err := sc.add(named(i, 1), false)
		require.Empty(t, err)
	}
	require.NotNil(t, sc.get(nameOf(0)))
}

// TestCompilesAScriptOnce: a cached script is not compiled again, a script of EVAL is permanent
// after SCRIPT LOAD, and SCRIPT FLUSH removes it.
func TestCompilesAScriptOnce(t *testing.T) {
	e := newEngine(&command.Server{Commands: command.NewTable(nil)})
	source := []byte("return 1 --[[" + strings.Repeat("x", compileInline) + "]]")
	first, err := e.compile(source, false)
	require.Empty(t, err)
	require.False(t, first.loaded)
	few := testing.AllocsPerRun(10, func() {
		again, err := e.compile(source, true)
		require.Empty(t, err)
		require.Same(t, first, again)
	})
	require.Zero(t, few)
	require.True(t, first.loaded)

	e.scripts.flush()
	again, err := e.compile(source, false)
	require.Empty(t, err)
	require.NotSame(t, first, again)
}

// TestParseSHA: a SHA-1 has 40 digits in any case.
func TestParseSHA(t *testing.T) {
	sha, ok := parseSHA([]byte("D006F1A90249474274C76F5BE725B8F5804A346B"))
	require.True(t, ok)
	require.Equal(t, shaOf([]byte("return {KEYS[1], ARGV[1]}")), sha)
	for _, bad := range []string{"", "d006", "D006F1A90249474274C76F5BE725B8F5804A346B0"} {
		_, ok := parseSHA([]byte(bad))
		require.False(t, ok, bad)
	}
}
