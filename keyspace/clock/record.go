package clock

import (
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Record is the time as a server saw it at one moment. From it a later start continues without
// going back. All values are in nanoseconds.
type Record struct {
	// Boot names one boot of one machine; zero if that is not known.
	Boot [16]byte
	// BootTime is how long that machine had been up, including the time for which it was suspended.
	BootTime int64
	// Derived is the instant of the keyspace, Wall the time of the wall clock.
	Derived limit.Instant
	Wall    int64
}

// Record reads all clocks.
func (c *System) Record() Record {
	return Record{Boot: bootID(), BootTime: c.src.boot(), Derived: c.Now(), Wall: c.src.wall()}
}

// Resumption is what a server knows of its past when it starts.
type Resumption struct {
	// Last is the last clock record.
	Last Record
	// Latest is an instant such that nothing has happened later.
	Latest limit.Instant
	// MaxForward bounds how far after Latest the wall clock is trusted; 0 means no bound.
	MaxForward time.Duration
}

// Start returns the first instant for that server, by the clocks of o. In the same boot the elapsed
// time is known exactly, whatever was done to the wall clock. After another boot the wall clock is
// trusted, unless it would lead back, or forward beyond MaxForward: then doubted is by how much.
func (r Resumption) Start(o Options) (start limit.Instant, doubted time.Duration) {
	src := o.clocks()
	return r.start(Record{Boot: bootID(), BootTime: src.boot(), Wall: src.wall()})
}

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

// bootID returns a random number that changes with every boot (Linux; zero elsewhere). It is read
// once.
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
