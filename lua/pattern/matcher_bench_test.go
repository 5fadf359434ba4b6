package pattern_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/pm"

	"github.com/cellserver/cellserver/lua/pattern"
)

// BenchmarkPattern compares the matcher with the interpreter's own, which has no budget, for one
// call of string.match with a pattern that neither has seen before.
func BenchmarkPattern(b *testing.B) {
	for _, c := range []struct{ name, pattern, subject string }{
		{"captures", "^(%w+):(%d+)$", "user:1234567"},
		{"search", "%d+$", "limits/api/v1/customers/31415926"},
		{"sets", "([^:]*):([^:]*):([^:]*)", "tenant-17:route-22:2026-01-01"},
		{"miss", "=(%d+);", strings.Repeat("window ", 40)},
	} {
		b.Run(c.name+"/own", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := &pattern.Matcher{Subject: c.subject, Pattern: c.pattern, Steps: 1 << 20}
				p, last := 0, len(c.subject)
				if c.pattern[0] == '^' {
					p, last = 1, 0
				}
				for s := 0; s <= last; s++ {
					end, err := m.Match(s, p)
					require.NoError(b, err)
					if end >= 0 {
						break
					}
				}
			}
		})
		b.Run(c.name+"/interpreter", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := pm.Find(c.pattern, []byte(c.subject), 0, 1)
				require.NoError(b, err)
			}
		})
	}
}
