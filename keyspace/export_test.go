package keyspace

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

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

// StartAt is Start where the machine's clocks show now.
func (r Resumption) StartAt(now ClockRecord) (start limit.Instant, doubted time.Duration) {
	return r.start(now)
}

// Seen is how many keys the view remembers to have seen expired.
func (v *View) Seen() int { return len(v.observed.seen) }

// ShardOf is which shard key lies in.
func (ks *Keyspace) ShardOf(key []byte) int { return int(ks.hash(key) >> ks.shift) }
