package command

import "errors"

// StayToPop is [Call.StayOnLoop] for a command that is about to remove elements, after it has
// counted them, and to copy so many bytes of them. A reply that would be too long is refused before
// anything is removed.
func (c *Call) StayToPop(copied int) error {
	if copied > Longest(c.W) {
		return ErrLongReply
	}
	return c.StayOnLoop(copied / unitBytes)
}

// unitBytes is how many bytes of a command, or of values that are copied for a reply, count as one
// unit.
const unitBytes = 64

// MaxLoopWork is how many units a single command may do on an event loop: a little less than a
// millisecond. A command with more units runs in the background.
const MaxLoopWork = 8 << 10

// CommandWork is the work in units of a command in addition to its arguments. writeWork is the work
// of each argument of a command that writes, unless Command.WordWork says otherwise: a key or an
// element has to be found or inserted.
const CommandWork = 4

const writeWork = 2

// maxInlineWords bounds Command.InlineWords: hardly any command does too much work with that few
// arguments, so dispatch checks nothing more up to this number.
const maxInlineWords = 256

// Units returns the work of so many elements and bytes together.
func Units(elements, bytes int) int { return elements + bytes/unitBytes }

// WordsWork returns the work of a call with n arguments. The bytes of long arguments are not
// counted: they also have to be copied to move the call to another goroutine.
func (c *Command) WordsWork(n int) int {
	switch {
	case c.WordWork > 0:
		return n * c.WordWork
	case c.Flags&FlagWrite != 0:
		return n * writeWork
	}
	return n
}

// MayChange reports whether CLIENT PAUSE WRITE delays a call.
func (c *Call) MayChange(cmd *Command, args [][]byte) bool {
	if cmd.Writes != nil {
		return cmd.Writes(c, cmd, args)
	}
	return cmd.Flags&FlagWrite != 0
}

// StaysOnLoop returns the reason why a command runs on its loop regardless of the number of its
// arguments; "" for commands that may leave it.
func (c *Command) StaysOnLoop() string {
	switch {
	case c.Group == "connection":
		return "it is about its session, and is done with a word in no time"
	case c.Subscribes():
		return "it goes on in slices"
	case c.Group == "transactions":
		return "WATCH goes on in slices, and EXEC asks for the transaction as a whole"
	case c.RunsScript():
		return "what a script does is bounded where it runs"
	case c.Flags&FlagBlocking != 0:
		return "it may wait, as its session: popWork says how much it is"
	}
	return ""
}

// ExceedsLoop reports whether a command that is about to do so many units has to do them in the
// background. If not, the units are counted for the batch. Inside a transaction or script, and in
// the background, everything is done at once.
func (c *Call) ExceedsLoop(units int) bool {
	if units <= MaxLoopWork || c.Client.Exclusive || c.Client.Background {
		c.Work += units
		return false
	}
	return true
}

// StayOnLoop is ExceedsLoop for work that is known only after a collection was locked. The function
// that the store has called returns the error of StayOnLoop. The error means that nothing was
// changed and that the command runs again in the background.
func (c *Call) StayOnLoop(units int) error {
	if c.ExceedsLoop(units) {
		return errLeaves
	}
	return nil
}

// errLeaves is the error of StayOnLoop.
var errLeaves = errors.New("to be done in the background")

// WordsLeave reports whether a call with n arguments, more than Command.InlineWords, has to run in
// the background because of them. If not, their work is counted for the batch, instead of the one
// unit for each argument that dispatch has counted.
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
