package slidingwindow

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is what a plan does to its key.
type Action uint8

// The actions.
const (
	// Keep writes nothing.
	Keep Action = iota
	// Store writes what Apply returns, with the plan's mode and expiry.
	Store
	// Delete makes the key go away: the limiter is as if it had never been used.
	Delete
)

// Plan is what [Decide] found out about one call. It is scratch that belongs to
// the caller and may be reused; a copy of it is independent. Until the next
// Decide it holds no reference to the value that was decided on.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry are those to store the value with, where Action is Store:
	// Expiry is the instant at which the limiter is unused again.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the key has the usage of another limit: of other windows than the call's.
	Foreign bool

	// found says that there was a key, replace that the state to store is a new
	// one: there was none, or it was of other windows than the call's.
	found, replace bool
	// slot is what the current slot of BUCKETS counts, under Even.
	slot int64
	// At the end of Decide, that of Mode holds what the call leaves behind: for
	// LOG the kept entries and the last one, for BUCKETS the emptied slots and
	// the changed one. The others may hold what was stored before.
	counter counter
	fixed   fixed
	buckets buckets
	log     log
}

// window is a limiter as it stands at one instant, in any mode.
type window interface {
	// used returns the estimate that decides.
	used() uint64
	// charged returns the units that a penalty adds to: the estimate, but for
	// COUNTER those of this window alone.
	charged() uint64
	// retry returns the time until quantity more units fit under most, without
	// traffic; only where they could (quantity <= most) but now do not.
	retry(most, quantity int64) time.Duration
	// reset returns the time until used is 0, without traffic.
	reset() time.Duration
	// add charges n units, or returns false where a count would pass int64.
	add(n int64) bool
	// take gives back up to n units, the newest first.
	take(n uint64)
}

// Apply returns the bytes to store for a plan whose Action is Store. value is what
// was stored and decided on, nil if nothing was. Apply either updates value in
// place and returns it, or leaves it alone and writes the new value into dst's
// capacity, into new memory where that is too small. dst must not overlap value.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch p.Mode {
	case Counter:
		value = p.room(value, dst, counterSize)
		p.counter.encode(value)
	case Fixed:
		value = p.room(value, dst, fixedSize)
		p.fixed.encode(value)
	case Buckets:
		value = p.room(value, dst, bucketHeader+word*p.buckets.slots)
		p.buckets.encode(value)
	case Log:
		return p.applyLog(value, dst)
	}
	return value
}

func (p *Plan) applyLog(value, dst []byte) []byte {
	size := 0
	if !p.replace {
		size = entries(value[logHeader:])
	}
	capacity := p.log.capacity(size)
	if capacity == size {
		p.log.encode(value)
		return value
	}
	fresh := sized(dst, logHeader+capacity*entrySize)
	clear(fresh) // slots without an entry are kept and replicated too: not with the bytes of another key
	p.log.relay(fresh, value)
	return fresh
}

// room returns the size bytes to encode into: the old value's where it is being
// updated.
func (p *Plan) room(value, dst []byte, size int) []byte {
	if !p.replace || len(value) == size {
		return value
	}
	return sized(dst, size)
}

func sized(dst []byte, size int) []byte {
	if cap(dst) < size {
		return make([]byte, size)
	}
	return dst[:size]
}
