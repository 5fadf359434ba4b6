package slidingwindow

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// The bounds of a call's parameters.
const (
	// MaxWindow is the longest window, 2^61 ns or about 73 years: twice as much
	// still fits an int64 with room for the instant itself.
	MaxWindow time.Duration = 1 << 61
	// MinSlots and MaxSlots bound the m of BUCKETS.
	MinSlots = 2
	MaxSlots = 1000
	// DefaultLogMaxEntries is the cap on a LOG's entries unless a call says
	// another.
	DefaultLogMaxEntries = 100_000
)

// Charge says how a call takes its quantity.
type Charge uint8

// The ways of charging.
const (
	// Whole takes the whole quantity or nothing.
	Whole Charge = iota
	// Peek takes nothing and tells whether the quantity would pass.
	Peek
	// Partial takes as much of the quantity as there is room for.
	Partial
	// Force takes the quantity even beyond the limit.
	Force
)

// Call is one call of SW.ALLOW: what the caller asks for, every time in
// nanoseconds. It may be reused; [Call.Validate] says whether it is sound.
type Call struct {
	// Limit is the most units per window. 0 refuses every call that asks for some.
	Limit int64
	// Window is the window's length, from 1 ns to [MaxWindow].
	Window time.Duration
	// Quantity is the number of units asked for. 0 asks for the state, a negative
	// one gives units back.
	Quantity int64
	// Mode is the way of remembering; [None] is not a mode of a call.
	Mode Mode
	// Slots is the m of BUCKETS, from [MinSlots] to [MaxSlots].
	Slots int
	// Even also holds every slot of BUCKETS to a share of ceil(Limit/Slots).
	Even bool
	// First lets windows start at the key's first use. Otherwise they start at
	// Phase.
	First bool
	// Phase is where windows start, as the distance from the Unix epoch to the
	// first start after it: 0 <= Phase < Window. [PhaseAt] and [PhaseOf] compute
	// it. LOG has no phase.
	Phase time.Duration
	// Charge is how the quantity is taken.
	Charge Charge
	// Penalize lets a refused call count too, up to one unit beyond the limit.
	Penalize bool
	// LogMaxEntries caps the entries of a LOG; 0 means [DefaultLogMaxEntries].
	LogMaxEntries int64

	// Millis, Block and Timeout do not touch the decision; they are here for the
	// command that has to act on them. Millis replies in milliseconds. Block
	// waits for units, for at most Timeout, where 0 is no bound.
	Millis  bool
	Block   bool
	Timeout time.Duration
}

// The ways in which a call can be unsound, beside [limit.ErrOverflow] for a
// window above [MaxWindow].
var (
	// ErrRange: a limit, window or number of slots outside its bounds.
	ErrRange = errors.New("limit, window or number of slots is out of range")
	// ErrExclusive: options that contradict each other.
	ErrExclusive = errors.New("options exclude each other")
	// ErrLogTooLong: a LOG with a limit above the cap on its entries.
	ErrLogTooLong = errors.New("limit exceeds the cap on the entries of a log")
)

// Validate returns nil for a sound call, else [ErrExclusive], [ErrRange],
// [limit.ErrOverflow] or [ErrLogTooLong], looked for in this order. [Decide] may
// be given sound calls only.
func (c *Call) Validate() error {
	forcing := c.Charge == Partial || c.Charge == Force
	switch {
	case c.Mode < Counter || c.Mode > Buckets,
		c.Even && c.Mode != Buckets,
		c.Mode == Log && (c.First || c.Phase != 0),
		c.Penalize && forcing,
		c.Block && (forcing || c.Penalize || c.Charge == Peek):
		return ErrExclusive
	case c.Limit < 0 || c.Window < 1,
		c.Mode == Buckets && (c.Slots < MinSlots || c.Slots > MaxSlots):
		return ErrRange
	case c.Window > MaxWindow:
		return limit.ErrOverflow
	case c.Phase < 0 || c.Phase >= c.Window:
		return ErrRange
	case c.Mode == Log && c.Limit > c.logMax():
		return ErrLogTooLong
	}
	return nil
}

func (c *Call) logMax() int64 {
	if c.LogMaxEntries <= 0 {
		return DefaultLogMaxEntries
	}
	return c.LogMaxEntries
}

// share returns the most units that a slot takes under Even.
func (c *Call) share() int64 { return limit.CeilDiv(c.Limit, int64(c.Slots)) }
