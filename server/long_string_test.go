package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGrowingALongStringCopiesItOnce: APPEND and SETRANGE beyond the room that a long value
// has make the value anew, and nothing else of its length.
func TestGrowingALongStringCopiesItOnce(t *testing.T) {
	const size, more = 8_000_000, 20_000 // which is more than memory is rounded up by
	c := start(t, "goroutine").dial()
	value, tail := strings.Repeat("v", size), strings.Repeat("t", more-10)+"0123456789"
	for name, call := range map[string][]string{
		"append":   {"APPEND", "k", tail},
		"setrange": {"SETRANGE", "k", fmt.Sprint(size), tail},
		"gap":      {"SETRANGE", "k", fmt.Sprint(size + more - 5), "56789"},
		"inside":   {"SETRANGE", "k", fmt.Sprint(size - 10), strings.Repeat("t", 10) + tail},
	} {
		c.do("SET", "k", value)
		var n string
		taken := allocatedBy(func() { n = c.do(call...) })
		require.Equal(t, fmt.Sprintf(":%d\r\n", size+more), n, name)
		if !raceDetector { // with it the compiler makes new memory and appends to it in two steps
			require.Less(t, taken, uint64(size*13/10), name)
		}
		want := "t0123456789"
		if name == "gap" {
			want = "\x00\x00\x00\x00\x00\x0056789"
		}
		require.Equal(t, bulk(want), c.do("GETRANGE", "k", "-11", "-1"), name)
		require.Equal(t, bulk("vv"), c.do("GETRANGE", "k", fmt.Sprint(size-12), fmt.Sprint(size-11)), name)
		c.do("APPEND", "k", "x")
		require.Equal(t, bulk(want+"x"), c.do("GETRANGE", "k", "-12", "-1"), name)
		c.do("DEL", "k")
	}
	require.Equal(t, ":20000\r\n", c.do("SETRANGE", "new", "19999", "x"))
	require.Equal(t, bulk("\x00x"), c.do("GETRANGE", "new", "-2", "-1"))
	c.do("SET", "short", "s")
	require.Equal(t, ":20001\r\n", c.do("APPEND", "short", strings.Repeat("y", 20_000)))
	require.Equal(t, bulk("syy"), c.do("GETRANGE", "short", "0", "2"))
}
