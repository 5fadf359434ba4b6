package strings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestGrowingALongStringCopiesItOnce: APPEND and SETRANGE beyond the capacity of a long value
// allocate the new value, and nothing else of its length.
func TestGrowingALongStringCopiesItOnce(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const size, more = 8_000_000, 20_000 // more than an allocation is rounded up by
		c := w.Start().Dial()
		value, tail := strings.Repeat("v", size), strings.Repeat("t", more-10)+"0123456789"
		for name, call := range map[string][]string{
			"append":   {"APPEND", "k", tail},
			"setrange": {"SETRANGE", "k", fmt.Sprint(size), tail},
			"gap":      {"SETRANGE", "k", fmt.Sprint(size + more - 5), "56789"},
			"inside":   {"SETRANGE", "k", fmt.Sprint(size - 10), strings.Repeat("t", 10) + tail},
		} {
			c.Do("SET", "k", value)
			var n string
			taken := inproc.AllocatedBy(func() { n = c.Do(call...) })
			require.Equal(t, fmt.Sprintf(":%d\r\n", size+more), n, name)
			if !effort.RaceDetector { // the race detector makes the compiler allocate and append in two steps
				require.Less(t, taken, uint64(size*13/10), name)
			}
			want := "t0123456789"
			if name == "gap" {
				want = "\x00\x00\x00\x00\x00\x0056789"
			}
			require.Equal(t, inproc.Bulk(want), c.Do("GETRANGE", "k", "-11", "-1"), name)
			require.Equal(t, inproc.Bulk("vv"), c.Do("GETRANGE", "k", fmt.Sprint(size-12), fmt.Sprint(size-11)), name)
			c.Do("APPEND", "k", "x")
			require.Equal(t, inproc.Bulk(want+"x"), c.Do("GETRANGE", "k", "-12", "-1"), name)
			c.Do("DEL", "k")
		}
		require.Equal(t, ":20000\r\n", c.Do("SETRANGE", "new", "19999", "x"))
		require.Equal(t, inproc.Bulk("\x00x"), c.Do("GETRANGE", "new", "-2", "-1"))
		c.Do("SET", "short", "s")
		require.Equal(t, ":20001\r\n", c.Do("APPEND", "short", strings.Repeat("y", 20_000)))
		require.Equal(t, inproc.Bulk("syy"), c.Do("GETRANGE", "short", "0", "2"))
	})
}

// TestSetrangeAsksForItsZerosFirst: a short command that would make a long value is refused
// before the value is allocated, if it does not fit into memory.
func TestSetrangeAsksForItsZerosFirst(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "40mb")
		c := s.Dial()
		require.Equal(t, ":20000001\r\n", c.Do("SETRANGE", "a", "20000000", "x"))
		taken := inproc.AllocatedBy(func() {
			for range 10 {
				require.Equal(t, inproc.OOM, c.Do("SETRANGE", "b", "30000000", "x"))
			}
		})
		require.Less(t, taken, uint64(20<<20))
		require.Equal(t, ":20000001\r\n", c.Do("SETRANGE", "a", "0", "y"), "what is there may be changed")
		require.Equal(t, ":1001\r\n", c.Do("SETRANGE", "c", "1000", "x"))
	})
}
