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
func TestStartAfter(t *testing.T) {
	const (
		derived = limit.Instant(1_700_000_000_000_000_000)
		hour    = int64(time.Hour)
	)
	here, there := [16]byte{1}, [16]byte{2}
	last := keyspace.ClockRecord{Boot: here, BootTime: 5 * hour, Derived: derived, Wall: int64(derived)}
	cases := []struct {
		name string
		now  keyspace.ClockRecord
		want limit.Instant
	}{
		{"same boot", keyspace.ClockRecord{Boot: here, BootTime: 5*hour + 7, Wall: int64(derived) + 7}, derived + 7},
		{"same boot, wall stepped back", keyspace.ClockRecord{Boot: here, BootTime: 6 * hour, Wall: 1}, derived.Add(time.Hour)},
		{"same boot, wall stepped forward", keyspace.ClockRecord{Boot: here, BootTime: 6 * hour, Wall: int64(derived) + 99*hour}, derived.Add(time.Hour)},
		{"other boot, later", keyspace.ClockRecord{Boot: there, BootTime: 9 * hour, Wall: int64(derived) + hour}, derived.Add(time.Hour)},
		{"other boot, wall behind", keyspace.ClockRecord{Boot: there, BootTime: 9 * hour, Wall: int64(derived) - hour}, derived},
		{"no boot id", keyspace.ClockRecord{BootTime: 6 * hour, Wall: int64(derived) + 3}, derived + 3},
		{"up for less than before", keyspace.ClockRecord{Boot: here, BootTime: hour, Wall: int64(derived) + 3}, derived + 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, keyspace.StartAfterAt(last, c.now))
		})
	}
	unknown := last
	unknown.Boot = [16]byte{}
	require.Equal(t, derived+3, keyspace.StartAfterAt(unknown, keyspace.ClockRecord{BootTime: 6 * hour, Wall: int64(derived) + 3}))
}
