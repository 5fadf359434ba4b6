package arg

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string][2]int64{ // want is in seconds, and in milliseconds; 0 is refused
		"1": {1, 1}, "60": {60, 60}, "60s": {60, 60_000}, "1m": {60, 60_000}, "12h": {43_200, 43_200_000},
		"1d": {86_400, 86_400_000}, "500ms": {0, 500}, "2000ms": {2, 2000}, "1ms": {0, 1},
		"9223372036854775807": {1<<63 - 1, 1<<63 - 1}, "9223372036854775807s": {1<<63 - 1, 0},
		"153722867280912930m": {9223372036854775800, 0}, "153722867280912931m": {},
		"9223372036854775808": {}, "0": {}, "0s": {}, "-1": {}, "-1s": {}, "+1s": {}, "01s": {}, "1.5s": {}, "1e3": {},
		"": {}, "s": {}, "m": {}, "1 s": {}, " 1s": {}, "1s ": {}, "1M": {}, "1S": {}, "1w": {}, "1y": {}, "1us": {}, "1h30m": {}, "1sm": {},
		"10s\x00": {},
	} {
		for i, unit := range []time.Duration{time.Second, time.Millisecond} {
			n, ok := Duration([]byte(text), unit)
			require.Equal(t, want[i] != 0, ok, "%q in %s", text, unit)
			if ok {
				require.Equal(t, want[i], n, "%q in %s", text, unit)
			}
		}
	}
}
