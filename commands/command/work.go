package command

import "errors"

// StayToPop is stay for a command that is about to take elements away, which it has
// counted, and to copy so many bytes of them. A reply that would be too long is refused
// before anything is taken.
func (c *Call) StayToPop(copied int) error {
	if copied > Longest(c.W) {
		return ErrLongReply
	}
	return c.StayOnLoop(copied / unitBytes)
}

// unitBytes is how many bytes, of a command or of values that are copied for a
// reply, make one unit.
const unitBytes = 64

// MaxLoopWork is how many units a single command may do on a loop: a little less than
// a millisecond. One that would do more leaves it.
const MaxLoopWork = 8 << 10

// CommandWork is what a command is beside its words, and writeWork what each of many
// words is of one that writes, unless Command.WordWork says otherwise: a key or an
// element has to be found, and there has to be room for it.
const CommandWork = 4

const writeWork = 2

// maxInlineWords is how many words few commands have too much to do with: nobody asks
// about those of others then.
const maxInlineWords = 256

// Units is the work that elements and bytes are together.
func Units(elements, bytes int) int { return elements + bytes/unitBytes }

// WordsWork is the work of a command of n words. The bytes of long words are no part of
// it: to hand them over to somebody else they have to be copied, too.
func (c *Command) WordsWork(n int) int {
	switch {
	case c.WordWork > 0:
		return n * c.WordWork
	case c.Flags&FlagWrite != 0:
		return n * writeWork
	}
	return n
}

// MayChange reports whether a command is one for CLIENT PAUSE WRITE.
func (c *Call) MayChange(cmd *Command, args [][]byte) bool {
	if cmd.Writes != nil {
		return cmd.Writes(c, cmd, args)
	}
	return cmd.Flags&FlagWrite != 0
}

// StaysOnLoop says why a command runs on its loop however many words it has; "" for those that
// do not.
func (c *Command) StaysOnLoop() string {
	switch {
	case c.Group == "connection":
		return "it is about its session, and is done with a word in no time"
	case c.Subscribes(), c.Name == "watch":
		return "it goes on in slices"
	case c.Group == "transactions":
		return "EXEC asks for the transaction as a whole"
	case c.RunsScript():
		return "what a script does is bounded where it runs"
	case c.Flags&FlagBlocking != 0:
		return "it may wait, as its session: popWork says how much it is"
	}
	return ""
}

// ExceedsLoop reports whether a command that is about to do so many units is to do them
// in the background. If not, they are counted against its turn. Inside a transaction or
// script, and in the background, everything is done at once.
func (c *Call) ExceedsLoop(units int) bool {
	if units <= MaxLoopWork || c.Client.Exclusive || c.Client.Background {
		c.Work += units
		return false
	}
	return true
}

// StayOnLoop is ExceedsLoop for what is found out with a collection locked: its error, which the
// function that the store has called returns, means that nothing has been done and that
// the command is run again, in the background.
func (c *Call) StayOnLoop(units int) error {
	if c.ExceedsLoop(units) {
		return errLeaves
	}
	return nil
}

// errLeaves is what stay returns.
var errLeaves = errors.New("to be done in the background")

// WordsLeave reports whether a command of n words, more than Command.InlineWords, is to run beside the
// loops because of them. If not, they are counted against the turn, where dispatch has
// counted one unit each.
func (c *Call) WordsLeave(n int) bool {
	if c.Cmd.StaysOnLoop() != "" {
		return false
	}
	if work := c.Cmd.WordsWork(n); !c.ExceedsLoop(work) {
		c.Work -= n
		return false
	}
	return true
}
