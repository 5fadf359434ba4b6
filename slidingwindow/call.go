package slidingwindow

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
)

// These are the bounds of the parameters of a call.
const (
	// MaxWindow is the longest window, 2^61 ns or about 73 years. The sum of a present instant and
	// two such windows still fits into an int64.
	MaxWindow time.Duration = 1 << 61
	// MinSlots and MaxSlots are the bounds of m in BUCKETS m.
	MinSlots = 2
	MaxSlots = 1000
	// DefaultLogMaxEntries is the maximum number of entries of a LOG if a call sets no other
	// maximum.
	DefaultLogMaxEntries = 100_000
)

// Charge is the way in which a call takes its quantity.
type Charge uint8

// These are the values of [Charge].
const (
	// Whole takes the whole quantity or nothing.
	Whole Charge = iota
	// Peek takes nothing, and reports whether the quantity would pass.
	Peek
	// Partial takes as many units of the quantity as there is room for.
	Partial
	// Force takes the whole quantity even beyond the limit.
	Force
)

// Call has the parameters of one SW.ALLOW, with all times in nanoseconds. [Call.Validate] checks
// them. A Call may be reused.
type Call struct {
	// Limit is the maximum number of units per window. A limit of 0 refuses every call with a
	// positive quantity.
	Limit int64
	// Window is the window's length, from 1 ns to [MaxWindow]. It is 0 for [Calendar].
	Window time.Duration
	// Quantity is the number of requested units. 0 only reads the state, and a negative quantity
	// gives units back.
	Quantity int64
	// Mode is the mode of the call. [None] is invalid here.
	Mode Mode
	// Slots is m of BUCKETS m, from [MinSlots] to [MaxSlots].
	Slots int
	// Even says that each slot of BUCKETS may get at most ceil(Limit/Slots) units.
	Even bool
	// First makes windows start at the first use of the key instead of at Phase.
	First bool
	// Phase is the time from the Unix epoch to the first start of a window at or after the epoch, 0
	// <= Phase < Window. [PhaseAt] and [PhaseOf] compute it. LOG has no phase.
	Phase time.Duration
	// Calendar says when the windows of the mode [Calendar] begin. In other modes it is zero.
	Calendar calendar.Rule
	// Charge is the way in which the call takes its quantity.
	Charge Charge
	// Penalize makes a refused call count, too, up to one unit beyond the limit.
	Penalize bool
	// LogMaxEntries is the maximum number of entries of a LOG; 0 means [DefaultLogMaxEntries].
	LogMaxEntries int64

	// Millis, Block and Timeout do not affect the decision; the command uses them. Millis says that
	// times are replied in milliseconds. Block says that the command waits for units, for at most
	// Timeout, where 0 means no bound.
	Millis  bool
	Block   bool
	Timeout time.Duration
}

// These are errors of [Call.Validate], which also returns [limit.ErrOverflow] for a window above
// [MaxWindow].
var (
	// ErrRange means that a limit, window, phase or number of slots is out of its bounds.
	ErrRange = errors.New("limit, window or number of slots is out of range")
	// ErrExclusive means that options contradict each other, or that the mode is not a valid one.
	ErrExclusive = errors.New("options exclude each other")
	// ErrLogTooLong means that the limit of a LOG is above the maximum number of its entries.
	ErrLogTooLong = errors.New("limit exceeds the cap on the entries of a log")
)

// Validate returns nil for a valid call, otherwise [ErrExclusive], [ErrRange], [limit.ErrOverflow]
// or [ErrLogTooLong]. [Decide] must be called only with valid calls.
func (c *Call) Validate() error {
	forcing := c.Charge == Partial || c.Charge == Force
	switch {
	case c.Mode < Counter || c.Mode > Calendar,
		c.Even && c.Mode != Buckets,
		c.Mode == Log && (c.First || c.Phase != 0),
		c.Mode == Calendar && (c.First || c.Phase != 0 || c.Window != 0),
		c.Mode != Calendar && c.Calendar != calendar.Rule{},
		c.Penalize && forcing,
		c.Block && (forcing || c.Penalize || c.Charge == Peek):
		return ErrExclusive
	case c.Limit < 0 || c.Window < 1 && c.Mode != Calendar,
		c.Mode == Calendar && !c.Calendar.Valid(),
		c.Mode == Buckets && (c.Slots < MinSlots || c.Slots > MaxSlots):
		return ErrRange
	case c.Window > MaxWindow:
		return limit.ErrOverflow
	case c.Phase < 0 || c.Phase >= c.Window && c.Mode != Calendar:
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

// share returns the maximum number of units in one slot if Even is set.
func (c *Call) share() int64 { return limit.CeilDiv(c.Limit, int64(c.Slots)) }
