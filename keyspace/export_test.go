package keyspace

import "github.com/cellserver/cellserver/limit"

// Storages are the names of all kinds of storage there are.
func Storages() (names []string) {
	for name := range storages {
		names = append(names, name)
	}
	return names
}

// With returns o with that kind of storage.
func (o Options) With(storage string) Options {
	o.newTable = storages[storage]
	return o
}

// WithSources returns o with these in place of the system's clocks, in nanoseconds.
func (o ClockOptions) WithSources(wall, mono, boot func() int64) ClockOptions {
	o.sources = &clockSources{wall: wall, mono: mono, boot: boot}
	return o
}

// RaceDetector says whether the tests run under it.
const RaceDetector = raceDetector

// StartAfterAt is StartAfter where the machine's clocks show now.
func StartAfterAt(last, now ClockRecord) limit.Instant { return startAfter(last, now) }
