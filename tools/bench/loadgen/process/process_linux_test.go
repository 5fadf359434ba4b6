package process_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	const line = "42 (a (mad) name) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 8 0 5000 1000000 300 18446744073709551615 1 1 0"
	u, err := process.ParseStat([]byte(line), 4096)
	require.NoError(t, err)
	require.Equal(t, process.Usage{CPU: 1750 * time.Millisecond, User: 1500 * time.Millisecond, RSS: 300 * 4096}, u)
	for _, bad := range []string{"", "42 (x) S 1", "42 (x) S 1 2 3 4 5 6 7 8 9 10 a b c d e f g h i j k"} {
		_, err := process.ParseStat([]byte(bad), 4096)
		require.ErrorIs(t, err, process.ErrUnknown, bad)
	}
}

func TestParsePeak(t *testing.T) {
	most, err := process.ParsePeak([]byte("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t     300 kB\nVmRSS:\t     200 kB\n"))
	require.NoError(t, err)
	require.EqualValues(t, 300<<10, most)
	for _, bad := range []string{"", "Name:\tx\n", "Name:\tx\nVmHWM:", "Name:\tx\nVmHWM:\tmany kB\n"} {
		_, err := process.ParsePeak([]byte(bad))
		require.ErrorIs(t, err, process.ErrUnknown, bad)
	}
}
