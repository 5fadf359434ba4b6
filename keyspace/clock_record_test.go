package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// The bar T4: on the same boot a restart goes on by the time the machine has been
// up, whatever the wall clock says; on another it never goes back.
func TestResumption(t *testing.T) {
	const (
		derived = limit.Instant(1_700_000_000_000_000_000)
		hour    = int64(time.Hour)
	)
	here, there := [16]byte{1}, [16]byte{2}
	last := keyspace.ClockRecord{Boot: here, BootTime: 5 * hour, Derived: derived, Wall: int64(derived)}
	const latest = derived + limit.Instant(time.Second)
	cases := []struct {
		name       string
		now        keyspace.ClockRecord
		maxForward time.Duration
		want       limit.Instant
		doubted    time.Duration
	}{
		{"same boot", keyspace.ClockRecord{Boot: here, BootTime: 5*hour + 7, Wall: int64(derived) + 7}, 0, derived + 7, 0},
		{"same boot, wall stepped back", keyspace.ClockRecord{Boot: here, BootTime: 6 * hour, Wall: 1}, 0, derived.Add(time.Hour), 0},
		{"same boot, wall stepped forward", keyspace.ClockRecord{Boot: here, BootTime: 6 * hour, Wall: int64(derived) + 99*hour}, time.Minute, derived.Add(time.Hour), 0},
		{"other boot, later", keyspace.ClockRecord{Boot: there, BootTime: 9 * hour, Wall: int64(derived) + hour}, 0, derived.Add(time.Hour), 0},
		{"other boot, wall behind", keyspace.ClockRecord{Boot: there, BootTime: 9 * hour, Wall: int64(derived) - hour}, 0, latest, 0},
		{"other boot, wall behind the last effect", keyspace.ClockRecord{Boot: there, Wall: int64(derived) + 5e8}, time.Hour, latest, 0},
		{"other boot, wall as far as is believed", keyspace.ClockRecord{Boot: there, Wall: int64(latest) + hour}, time.Hour, latest.Add(time.Hour), 0},
		{"other boot, wall too far", keyspace.ClockRecord{Boot: there, Wall: int64(latest) + 3*hour}, time.Hour, latest.Add(time.Hour), 2 * time.Hour},
		{"no boot id", keyspace.ClockRecord{BootTime: 6 * hour, Wall: int64(latest) + 3}, 0, latest + 3, 0},
		{"up for less than before", keyspace.ClockRecord{Boot: here, BootTime: hour, Wall: int64(latest) + 3}, 0, latest + 3, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			start, doubted := keyspace.Resumption{Last: last, Latest: latest, MaxForward: c.maxForward}.StartAt(c.now)
			require.Equal(t, c.want, start)
			require.Equal(t, c.doubted, doubted)
		})
	}
	unknown := last
	unknown.Boot = [16]byte{}
	start, _ := keyspace.Resumption{Last: unknown, Latest: latest}.StartAt(keyspace.ClockRecord{BootTime: 6 * hour, Wall: int64(latest) + 3})
	require.Equal(t, latest+3, start)
}
