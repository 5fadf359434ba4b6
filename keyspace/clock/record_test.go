package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// TestTimeGoesOnAfterARestart tests that after a restart in the same boot time advances by the
// machine's uptime, whatever the wall clock shows, and that it never goes back after another boot.
func TestTimeGoesOnAfterARestart(t *testing.T) {
	const (
		derived = limit.Instant(1_700_000_000_000_000_000)
		hour    = int64(time.Hour)
	)
	here, there := [16]byte{1}, [16]byte{2}
	last := clock.Record{Boot: here, BootTime: 5 * hour, Derived: derived, Wall: int64(derived)}
	const latest = derived + limit.Instant(time.Second)
	cases := []struct {
		name       string
		now        clock.Record
		maxForward time.Duration
		want       limit.Instant
		doubted    time.Duration
	}{
		{"same boot", clock.Record{Boot: here, BootTime: 5*hour + 7, Wall: int64(derived) + 7}, 0, derived + 7, 0},
		{"same boot, wall stepped back", clock.Record{Boot: here, BootTime: 6 * hour, Wall: 1}, 0, derived.Add(time.Hour), 0},
		{"same boot, wall stepped forward", clock.Record{Boot: here, BootTime: 6 * hour, Wall: int64(derived) + 99*hour}, time.Minute, derived.Add(time.Hour), 0},
		{"other boot, later", clock.Record{Boot: there, BootTime: 9 * hour, Wall: int64(derived) + hour}, 0, derived.Add(time.Hour), 0},
		{"other boot, wall behind", clock.Record{Boot: there, BootTime: 9 * hour, Wall: int64(derived) - hour}, 0, latest, 0},
		{"other boot, wall behind the last effect", clock.Record{Boot: there, Wall: int64(derived) + 5e8}, time.Hour, latest, 0},
		{"other boot, wall as far as is believed", clock.Record{Boot: there, Wall: int64(latest) + hour}, time.Hour, latest.Add(time.Hour), 0},
		{"other boot, wall too far", clock.Record{Boot: there, Wall: int64(latest) + 3*hour}, time.Hour, latest.Add(time.Hour), 2 * time.Hour},
		{"no boot id", clock.Record{BootTime: 6 * hour, Wall: int64(latest) + 3}, 0, latest + 3, 0},
		{"up for less than before", clock.Record{Boot: here, BootTime: hour, Wall: int64(latest) + 3}, 0, latest + 3, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			start, doubted := clock.Resumption{Last: last, Latest: latest, MaxForward: c.maxForward}.StartAt(c.now)
			require.Equal(t, c.want, start)
			require.Equal(t, c.doubted, doubted)
		})
	}
	unknown := last
	unknown.Boot = [16]byte{}
	start, _ := clock.Resumption{Last: unknown, Latest: latest}.StartAt(clock.Record{BootTime: 6 * hour, Wall: int64(latest) + 3})
	require.Equal(t, latest+3, start)
}
