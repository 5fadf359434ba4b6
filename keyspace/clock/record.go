package clock

import (
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Record has the readings of a server's clocks at one moment. A later start of the server continues
// from the last record without going back: see [Resumption]. All times are in nanoseconds.
type Record struct {
	// Boot identifies one boot of one machine. It is zero if that is not known.
	Boot [16]byte
	// BootTime is the time for which the machine had been up, including the time for which it was
	// suspended.
	BootTime int64
	// Derived is the instant of the keyspace, and Wall the time of the wall clock since 1970.
	Derived limit.Instant
	Wall    int64
}

// Record reads all clocks and returns the readings.
func (c *System) Record() Record {
	return Record{Boot: bootID(), BootTime: c.src.boot(), Derived: c.Now(), Wall: c.src.wall()}
}

// Resumption has the data about the earlier run of a server from which the clock continues at a start.
type Resumption struct {
	// Last is the last clock record that the server has stored.
	Last Record
	// Latest is an instant at or after everything that happened in the earlier run.
	Latest limit.Instant
	// MaxForward is the maximum time after Latest for which the wall clock is trusted; 0 means no
	// bound.
	MaxForward time.Duration
}

// Start returns the instant at which the server begins, for [Options.Start]. It reads the clocks of
// o. In the same boot of the machine the elapsed time is known exactly, whatever was done to the
// wall clock. After another boot the wall clock is used, with two exceptions. If it is before
// Latest, start is Latest. If it is more than MaxForward after Latest, start is Latest plus
// MaxForward, and doubted is the time by which the wall clock is later than that; otherwise doubted
// is 0.
func (r Resumption) Start(o Options) (start limit.Instant, doubted time.Duration) {
	src := o.clocks()
	return r.start(Record{Boot: bootID(), BootTime: src.boot(), Wall: src.wall()})
}

// start does what Start does, with now, the present readings of the clocks. now.Derived is not
// used.
func (r Resumption) start(now Record) (start limit.Instant, doubted time.Duration) {
	last := &r.Last
	if last.Boot != ([16]byte{}) && last.Boot == now.Boot && now.BootTime >= last.BootTime {
		return last.Derived.Add(time.Duration(now.BootTime - last.BootTime)), 0
	}
	start = max(limit.Instant(now.Wall), r.Latest)
	if farthest := r.Latest.Add(r.MaxForward); r.MaxForward > 0 && start > farthest {
		return farthest, start.Sub(farthest)
	}
	return start, 0
}

// bootID returns a random number that changes with every boot of the machine. It is zero if it
// cannot be read, as on other systems than Linux. It is read once per process.
var bootID = sync.OnceValue(readBootID)

func readBootID() (id [16]byte) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err == nil {
		copy(id[:], b)
	}
	return id
}
