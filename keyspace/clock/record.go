package clock

import (
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Record is the time as a server saw it at one moment: what a later start
// needs to go on without ever going back. Nanoseconds throughout.
type Record struct {
	// Boot names one boot of one machine; zero if that is not known.
	Boot [16]byte
	// BootTime is how long that machine had been up, suspended or not.
	BootTime int64
	// Derived is the instant of the keyspace, Wall what the wall clock showed.
	Derived limit.Instant
	Wall    int64
}

// Record reads the clock in all its forms.
func (c *System) Record() Record {
	return Record{Boot: bootID(), BootTime: c.src.boot(), Derived: c.Now(), Wall: c.src.wall()}
}

// Resumption is what a server knows of its past that goes on from it.
type Resumption struct {
	// Last is the last clock record.
	Last Record
	// Latest is an instant that nothing which happened is later than.
	Latest limit.Instant
	// MaxForward is how far from Latest the wall clock is believed at most; 0 is no
	// bound.
	MaxForward time.Duration
}

// Start is the Start of o for that server, by the clocks of o. On the same boot the time
// since is known exactly, whatever was done to the wall clock; on another the wall clock
// is believed, unless that would lead back or, which doubted says by how much, too
// far.
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

// bootID is random and changes with every boot (Linux; zero elsewhere). It is read
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
