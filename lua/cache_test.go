package lua_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
)

func TestCacheKeepsLoadedScripts(t *testing.T) {
	cache := lua.NewCache(3)
	loaded, err := cache.Load([]byte("return 'loaded'"))
	require.NoError(t, err)
	first, err := cache.Eval([]byte("return 0"))
	require.NoError(t, err)
	again, err := cache.Eval([]byte("return 0"))
	require.NoError(t, err)
	require.Same(t, first, again)
	for i := range 10 {
		_, err := cache.Eval(fmt.Appendf(nil, "return %d", i))
		require.NoError(t, err)
	}
	require.Equal(t, 4, cache.Len())
	require.Same(t, loaded, cache.Lookup([]byte(strings.ToUpper(loaded.SHA()))))
	require.Nil(t, cache.Lookup([]byte(first.SHA())))
	require.Nil(t, cache.Lookup([]byte("short")))
	require.Positive(t, cache.Bytes())
	cache.Flush()
	require.Zero(t, cache.Len())
	require.Zero(t, cache.Bytes())
	require.Nil(t, cache.Lookup([]byte(loaded.SHA())))
}

func TestCacheLoadsWhatEvalLeft(t *testing.T) {
	cache := lua.NewCache(1)
	script, err := cache.Eval([]byte("return 1"))
	require.NoError(t, err)
	_, err = cache.Load([]byte("return 1"))
	require.NoError(t, err)
	_, err = cache.Eval([]byte("return 2"))
	require.NoError(t, err)
	_, err = cache.Eval([]byte("return 3"))
	require.NoError(t, err)
	require.Same(t, script, cache.Lookup([]byte(script.SHA())))
	require.Equal(t, 2, cache.Len())
	_, err = cache.Load([]byte("x x"))
	require.Error(t, err)
}
