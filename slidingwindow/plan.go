package slidingwindow

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is what a plan does to its key.
type Action uint8

// The actions.
const (
	// Keep stores nothing.
	Keep Action = iota
	// Store stores the result of Apply, with the plan's mode and expiry.
	Store
	// Delete removes the key, since the limiter is as if it had never been used.
	Delete
)

// Plan is the result of [Decide] for one call. It is scratch that belongs to the caller and may be
// reused; a copy of it is independent. It has no reference to the value on which it was decided.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry are to be stored with the value if Action is Store. Expiry is the instant at
	// which the limiter is unused again.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the key has the usage of a limit with other windows than the call's.
	Foreign bool

	// found says that the key exists, and replace that the state to store is a new one: the key did
	// not exist, or its windows were other than the call's.
	found, replace bool
	// slot is the count of the current slot of BUCKETS, under Even.
	slot int64
	// At the end of Decide, the one of Mode has the state after the call: for LOG the kept entries
	// and the last one, for BUCKETS the emptied slots and the changed one. The others may have the
	// stored state.
	counter counter
	fixed   fixed
	buckets buckets
	log     log
}

// window is the state of a limiter at one instant, in any mode.
type window interface {
	// used returns the estimate on which is decided.
	used() uint64
	// charged returns the units to which a penalty adds: the estimate, but for COUNTER only the
	// units of the present window.
	charged() uint64
	// retry returns the time until quantity more units fit under most, without
	// traffic; only where they could (quantity <= most) but now do not.
	retry(most, quantity int64) time.Duration
	// reset returns the time until used is 0, without traffic.
	reset() time.Duration
	// add charges n units, or returns false if a count would exceed int64.
	add(n int64) bool
	// take gives back up to n units, the newest first.
	take(n uint64)
}

// Apply returns the bytes to store for a plan whose Action is Store. value is the stored value on
// which the plan was decided, nil if there was none. Apply either updates value in place and
// returns it, or does not change it and writes the new value into dst's capacity, or into new
// memory if that is too small. dst must not overlap value.
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
	clear(fresh) // unused slots are stored and replicated too, so they must not have bytes of another key
	p.log.relay(fresh, value)
	return fresh
}

// room returns the size bytes to encode into: those of the old value if it is updated in place.
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
