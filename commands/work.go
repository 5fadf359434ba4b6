package commands

// This file is the one place that says how much a command may do on an event loop.
// Work is counted in units, of which about ten take a microsecond: a word of a command,
// an element that is looked at, or unitBytes bytes that are copied. What is known of a
// command only once it has found its key is asked with [Ctx.leaves] then.

const (
	// unitBytes is how many bytes, of a command or of values that are copied for a
	// reply, make one unit.
	unitBytes = 64
	// turnWork is how many units a turn may do before others have theirs.
	turnWork = 8 << 10
	// loopWork is how many units a single command may do on a loop: a little less than
	// a millisecond. One that would do more leaves it.
	loopWork = 8 << 10
)

// units is the work that elements and bytes are together.
func units(elements, bytes int) int { return elements + bytes/unitBytes }

// leaves reports whether a command that is about to do so many units is to do them
// beside the loops. If not, they are counted against its turn. Inside a transaction or
// script everything is done at once.
func (c *Ctx) leaves(units int) bool {
	if units <= loopWork || c.S.exclusive {
		c.work += units
		return false
	}
	return true
}
