package calendar_test

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// beginnings has a line for each zone, which testdata/boundaries.py has written: checksums of the
// beginnings of all windows, according to Python's zoneinfo.
//
//go:embed testdata/boundaries.txt
var beginnings string

// recorded are the rules of boundaries.py, by unit in the order of its checksums.
var recorded = [...]struct {
	unit calendar.Unit
	from []uint16
}{
	{calendar.Day, []uint16{0, 30, 60, 120, 150, 180, 23*60 + 30}},
	{calendar.Week, []uint16{1, 7}},
	{calendar.Month, []uint16{1, 15, 31}},
	{calendar.Year, []uint16{101, 229, 406, 1031}},
}

// TestZoneinfo compares the beginnings of all windows from 1970 to 2040 with those of Python's
// zoneinfo, in all zones. By default it compares years and months in all zones, and the others in
// every fortieth.
func TestZoneinfo(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(beginnings), "\n")
	require.True(t, strings.HasPrefix(lines[0], "# "+calendar.Release()+":"), "run calendar/testdata/boundaries.py")
	lines = lines[1:]
	require.Len(t, lines, 598)
	stride := effort.Steps(40, 0)
	var differ []string
	for i, line := range lines {
		words := strings.Fields(line)
		zone, ok := calendar.Load(words[0])
		require.True(t, ok, words[0])
		for j, r := range recorded {
			if j < 2 && stride > 0 && i%stride != 0 {
				continue
			}
			if beginningsOf(t, r.unit, r.from, zone) != words[1+j] {
				differ = append(differ, words[0]+" "+r.unit.String())
			}
		}
	}
	require.Empty(t, differ)
}

// beginningsOf returns the checksum of boundaries.py.
func beginningsOf(t *testing.T, unit calendar.Unit, from []uint16, zone *calendar.Zone) string {
	t.Helper()
	years := calendar.Rule{Unit: calendar.Year, From: 101, Zone: zone}
	first, _ := years.Window(limit.Instant(time.Date(1970, 7, 1, 0, 0, 0, 0, time.UTC).UnixNano()))
	_, last := years.Window(limit.Instant(time.Date(2040, 7, 1, 0, 0, 0, 0, time.UTC).UnixNano()))
	var b []byte
	for _, f := range from {
		r := calendar.Rule{Unit: unit, From: f, Zone: zone}
		for start, end := r.Window(first - 1); start < last; start, end = r.Window(end) {
			same, until := r.Window(end - 1)
			require.True(t, start == same && end == until, "a nanosecond before the end at %d", end)
			if start >= first {
				b = binary.LittleEndian.AppendUint64(b, uint64(int64(start)/int64(time.Second)))
			}
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
