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
	// DefaultLogMaxEntries is the maximum number of a LOG's entries unless a call sets another.
	DefaultLogMaxEntries = 100_000
)

// Charge is the way in which a call takes its quantity.
type Charge uint8

// The ways of charging.
const (
	// Whole takes the whole quantity or nothing.
	Whole Charge = iota
	// Peek takes nothing and reports whether the quantity would pass.
	Peek
	// Partial takes as many of the units as there is room for.
	Partial
	// Force takes the quantity even beyond the limit.
	Force
)

// Call has the parameters of one SW.ALLOW, with every time in nanoseconds. It may be reused.
// [Call.Validate] checks it.
type Call struct {
	// Limit is the maximum number of units per window. 0 refuses every call with a positive
	// quantity.
	Limit int64
	// Window is the window's length, from 1 ns to [MaxWindow].
	Window time.Duration
	// Quantity is the number of requested units. 0 asks for the state, and a negative quantity
	// gives units back.
	Quantity int64
	// Mode is the mode of the call; [None] is invalid here.
	Mode Mode
	// Slots is the m of BUCKETS, from [MinSlots] to [MaxSlots].
	Slots int
	// Even also holds every slot of BUCKETS to a share of ceil(Limit/Slots).
	Even bool
	// First makes windows start at the key's first use instead of at Phase.
	First bool
	// Phase is the distance from the Unix epoch to the first start of a window after it: 0 <= Phase
	// < Window. [PhaseAt] and [PhaseOf] compute it. LOG has no phase.
	Phase time.Duration
	// Charge is the way in which the quantity is taken.
	Charge Charge
	// Penalize makes a refused call count too, up to one unit beyond the limit.
	Penalize bool
	// LogMaxEntries bounds the entries of a LOG; 0 means [DefaultLogMaxEntries].
	LogMaxEntries int64

	// Millis, Block and Timeout do not affect the decision; the command uses them. Millis replies
	// in milliseconds. Block waits for units, for at most Timeout, where 0 means no bound.
	Millis  bool
	Block   bool
	Timeout time.Duration
}

// The errors of [Call.Validate], beside [limit.ErrOverflow] for a window above [MaxWindow].
var (
	// ErrRange: a limit, window or number of slots outside its bounds.
	ErrRange = errors.New("limit, window or number of slots is out of range")
	// ErrExclusive: options that contradict each other.
	ErrExclusive = errors.New("options exclude each other")
	// ErrLogTooLong: a LOG with a limit above the maximum number of its entries.
	ErrLogTooLong = errors.New("limit exceeds the cap on the entries of a log")
)

// Validate returns nil for a valid call, otherwise the first of [ErrExclusive], [ErrRange],
// [limit.ErrOverflow] and [ErrLogTooLong] that applies. [Decide] requires valid calls.
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

// share returns the maximum number of units of a slot under Even.
func (c *Call) share() int64 { return limit.CeilDiv(c.Limit, int64(c.Slots)) }
