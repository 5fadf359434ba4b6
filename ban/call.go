package ban

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Whole is the Factor with which successive bans have the same length.
const Whole = 1000

const (
	// MaxRefusals is the maximum of [Call.Refusals].
	MaxRefusals = 1_000_000
	// MaxFactor is the maximum of [Call.Factor]: each ban is 1,000 times as long as the last.
	MaxFactor = 1000 * Whole
	// MaxTime is the maximum of each time in a [Call].
	MaxTime = 10 * 366 * 24 * time.Hour
)

// ErrCall is the error of [Call.Validate] for a value out of bounds.
var ErrCall = errors.New("a value of BAN is out of bounds")

// Call has the parameters of the bans of a policy.
type Call struct {
	// Refusals is the number of denials within Window that start a ban, from 1 to MaxRefusals.
	Refusals int64
	// Window is the length of the window in which these denials have to come, from 1 ns to MaxTime.
	Window time.Duration
	// Block is the length of the first ban, from 1 ns to Max.
	Block time.Duration
	// Factor is the ratio of the lengths of two successive bans, in thousandths, from Whole to MaxFactor.
	Factor int64
	// Max is the length of the longest ban, and the time without a ban after which the level falls by one. It is at
	// most MaxTime.
	Max time.Duration
}

// Validate returns [ErrCall] if a value of c is out of its bounds.
func (c *Call) Validate() error {
	switch {
	case c.Refusals < 1 || c.Refusals > MaxRefusals,
		c.Window < 1 || c.Window > MaxTime,
		c.Max < 1 || c.Max > MaxTime,
		c.Block < 1 || c.Block > c.Max,
		c.Factor < Whole || c.Factor > MaxFactor:
		return ErrCall
	}
	return nil
}

// length returns the length of a ban at a level, and reports whether it is shorter than Max. A level at which
// bans last Max is not exceeded, so the loop ends early.
func (c *Call) length(level uint16) (d time.Duration, shorter bool) {
	d = c.Block
	for range level {
		if c.Factor == Whole || d >= c.Max {
			break
		}
		d = time.Duration(limit.MulDivCeil(int64(d), c.Factor, Whole))
	}
	if d >= c.Max {
		return c.Max, false
	}
	return d, c.Factor > Whole
}
