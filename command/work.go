package command

import "errors"

// StayToPop is [Call.StayOnLoop] for a command that has counted the elements it is about to remove.
// copied is how many bytes of them the reply copies. If the reply would be too long, StayToPop
// returns [ErrLongReply], so that the command fails before anything is removed.
func (c *Call) StayToPop(copied int) error {
	if copied > Longest(c.W) {
		return ErrLongReply
	}
	return c.StayOnLoop(copied / unitBytes)
}

// unitBytes is the number of bytes of a command, or of values that are copied for a reply, that
// count as one unit of work.
const unitBytes = 64

// MaxLoopWork is the number of units of work that a single command may do on an event loop: they
// take a little less than a millisecond. A command with more work runs in the background.
const MaxLoopWork = 8 << 10

// CommandWork is the work of a command in units, without the work of its arguments.
const CommandWork = 4

// writeWork is the work in units of each argument of a command that writes, since a key or an
// element has to be found or inserted. Command.WordWork overrides it.
const writeWork = 2

// maxInlineWords is the maximum of Command.InlineWords. Up to this number of arguments hardly any
// command does too much work, so dispatch checks nothing more.
const maxInlineWords = 256

// Units returns the work, in units, of processing so many elements and copying so many bytes.
func Units(elements, bytes int) int { return elements + bytes/unitBytes }

// WordsWork returns the work, in units, of a call with n arguments. It does not count the bytes of
// long arguments: moving the call to another goroutine would have to copy them, too.
func (c *Command) WordsWork(n int) int {
	switch {
	case c.WordWork > 0:
		return n * c.WordWork
	case c.Flags&FlagWrite != 0:
		return n * writeWork
	}
	return n
}

// MayChange reports whether a call of cmd with args may change something, so that CLIENT PAUSE
// WRITE delays it.
func (c *Call) MayChange(cmd *Command, args [][]byte) bool {
	if cmd.Writes != nil {
		return cmd.Writes(c, cmd, args)
	}
	return cmd.Flags&FlagWrite != 0
}

// StaysOnLoop returns the reason why the command runs on its event loop regardless of the number of
// its arguments; "" for commands that may leave the loop.
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

// ExceedsLoop reports whether a command that is about to do units of work has to do it in the
// background. If not, ExceedsLoop adds units to the work of the batch. Inside a transaction or
// script, and in the background, the result is always false.
func (c *Call) ExceedsLoop(units int) bool {
	if units <= MaxLoopWork || c.Client.Exclusive || c.Client.Background {
		c.Work += units
		return false
	}
	return true
}

// StayOnLoop is [Call.ExceedsLoop] for work whose amount is known only when a collection is locked.
// It returns an error if the command has to run in the background. The function that the store
// calls then changes nothing and returns the error, and the command passes it to [Call.LeftLoop].
func (c *Call) StayOnLoop(units int) error {
	if c.ExceedsLoop(units) {
		return errLeaves
	}
	return nil
}

var errLeaves = errors.New("to be done in the background")

// WordsLeave reports whether a call with n arguments, more than Command.InlineWords, has to run in
// the background because of their number. If not, WordsLeave adds their work to the work of the
// batch, and subtracts the one unit for each argument that dispatch has counted.
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
