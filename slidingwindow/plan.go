package slidingwindow

import (
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
)

// Action is the kind of change that a plan makes to its key.
type Action uint8

// These are the values of [Action].
const (
	// Keep changes nothing.
	Keep Action = iota
	// Store stores the result of Apply, with the mode and the expiry of the plan.
	Store
	// Delete removes the key, since the limiter is as if it had never been used.
	Delete
)

// Plan is the result of [Decide] for one call. It belongs to the caller and may be reused. A copy
// of a plan is independent. A plan has no reference to the value on which it was decided.
type Plan struct {
	Decision limit.Decision
	Action   Action
	// Mode and Expiry have to be stored with the value if Action is Store. Expiry is the instant at
	// which the limiter is as if it had never been used.
	Mode   Mode
	Expiry limit.Instant
	// Foreign says that the stored units were used under a limit with other windows than the call
	// has.
	Foreign bool

	// found says that the key exists. replace says that a change stores a new state, because the key did not exist, a
	// window of FIXED or CALENDAR is over, or the call has another mode or other windows than the stored ones.
	found, replace bool
	// slot is the count of the current slot of BUCKETS. It is used only if Call.Even is set.
	slot int64
	// After Decide, the field for Mode has the state after the call: for LOG the kept entries and
	// the last one, for BUCKETS the emptied slots and the changed one. The other fields may have
	// the stored state.
	counter counter
	fixed   fixed
	rule    calendar.Rule // the calendar of CALENDAR, if replace is set
	buckets buckets
	log     log
}

// window is the state of a limiter at one instant, in any mode.
type window interface {
	// used returns the number of units in use by which calls are decided. For COUNTER it is an
	// estimate.
	used() uint64
	// charged returns the number of units to which a penalty adds. It is the same as used, except
	// for COUNTER, where it has only the units of the present window.
	charged() uint64
	// retry returns the time until quantity more units fit under most if no calls come meanwhile.
	// It must be called only if these units do not fit now and quantity <= most.
	retry(most, quantity int64) time.Duration
	// reset returns the time until used is 0 if no calls come meanwhile.
	reset() time.Duration
	// add charges n units. It returns false if a count would exceed int64.
	add(n int64) bool
	// take gives back up to n units. The units that were used last are given back first.
	take(n uint64)
}

// Apply returns the bytes to store for a plan whose Action is Store. value is the stored value on
// which the plan was decided, or nil if there was none. Apply either updates value in place and
// returns it, or does not change it and writes the new value into dst, up to its capacity. If dst
// is too small, Apply allocates memory. dst must not overlap value.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch p.Mode {
	case Counter:
		value = p.room(value, dst, counterSize)
		p.counter.encode(value)
	case Fixed:
		value = p.room(value, dst, fixedSize)
		p.fixed.encode(value)
	case Calendar:
		value = p.room(value, dst, fixedSize+ruleSize+len(p.rule.Zone.Name()))
		p.fixed.encode(value)
		if p.replace {
			encodeRule(value[fixedSize:], &p.rule)
		}
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
	clear(fresh) // unused slots are stored and replicated, too, so they are cleared of bytes of another key
	p.log.relay(fresh, value)
	return fresh
}

// room returns size bytes into which the state is encoded. They are the bytes of value if the state
// is updated in place or value has that size, otherwise those of dst, or new memory if dst is too
// small.
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
