package clause

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWithUnit: InUnit returns the original text, in either unit.
func TestWithUnit(t *testing.T) {
	for _, row := range []struct{ text, seconds, millis string }{
		{"TB 200 100 1", "TB 200 100 1s", "TB 200 100 1ms"},
		{"TB 10 1 60 INTERVAL INIT 5", "TB 10 1 60s INTERVAL INIT 5", "TB 10 1 60ms INTERVAL INIT 5"},
		{"SW 100 86400 FIXED ANCHOR 7", "SW 100 86400s FIXED ANCHOR 7", "SW 100 86400ms FIXED ANCHOR 7"},
		{"CL 15 30 60", "CL 15 30 60s", "CL 15 30 60ms"},
		{"CC 5 30", "CC 5 30s", "CC 5 30ms"},
		{"TB 1", "TB 1", "TB 1"},
		{"", "", ""},
	} {
		require.Equal(t, row.seconds, WithUnit(row.text, false))
		require.Equal(t, row.millis, WithUnit(row.text, true))
		for text, unit := range map[string]time.Duration{row.seconds: time.Second, row.millis: time.Millisecond} {
			var words [][]byte
			for _, w := range strings.Fields(text) {
				words = append(words, []byte(w))
			}
			if len(words) < 3 {
				continue
			}
			again, err := InUnit(words, unit)
			require.Empty(t, err)
			var back []string
			for _, w := range again {
				back = append(back, string(w))
			}
			require.Equal(t, row.text, strings.Join(back, " "))
		}
	}
}
