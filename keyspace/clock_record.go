package keyspace

import (
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ClockRecord is the time as a server saw it at one moment: what a later start
// needs to go on without ever going back. Nanoseconds throughout.
type ClockRecord struct {
	// Boot names one boot of one machine; zero if that is not known.
	Boot [16]byte
	// BootTime is how long that machine had been up, suspended or not.
	BootTime int64
	// Derived is the instant of the keyspace, Wall what the wall clock showed.
	Derived limit.Instant
	Wall    int64
}

// Record reads the clock in all its forms.
func (c *SystemClock) Record() ClockRecord {
	return ClockRecord{Boot: bootID(), BootTime: c.src.boot(), Derived: c.Now(), Wall: c.src.wall()}
}

// StartAfter is the [ClockOptions.Start] of a server that goes on from what last
// was recorded. On the same boot the time since is known exactly, whatever was
// done to the wall clock; on another the wall clock is believed, unless that would
// lead back.
func StartAfter(last ClockRecord) limit.Instant {
	src := systemSources()
	return startAfter(last, ClockRecord{Boot: bootID(), BootTime: src.boot(), Wall: src.wall()})
}

func startAfter(last, now ClockRecord) limit.Instant {
	if last.Boot != ([16]byte{}) && last.Boot == now.Boot && now.BootTime >= last.BootTime {
		return last.Derived.Add(time.Duration(now.BootTime - last.BootTime))
	}
	return max(limit.Instant(now.Wall), last.Derived)
}

// bootID is random and changes with every boot (Linux; zero elsewhere).
func bootID() (id [16]byte) {
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
