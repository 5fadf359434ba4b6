package commands

import "errors"

// This file is the one place that says how much a command may do on an event loop.
// Work is counted in units, of which about ten take a microsecond: a word of a command,
// an element that is looked at, or unitBytes bytes that are copied.
//
// What a command does is known at one of three times. Its words are there before it
// runs: [Lane.dispatch] asks wordsLeave. What it does to a collection is known once that
// is found: the handler asks [Ctx.leaves] or [Ctx.stay] before it changes anything.
// A transaction is the sum of its commands: EXEC asks transactionWork. Whatever would do
// more than loopWork then runs beside the loops (beside.go), or in slices (slices.go).

const (
	// unitBytes is how many bytes, of a command or of values that are copied for a
	// reply, make one unit.
	unitBytes = 64
	// turnWork is how many units a turn may do before others have theirs.
	turnWork = 8 << 10
	// loopWork is how many units a single command may do on a loop: a little less than
	// a millisecond. One that would do more leaves it.
	loopWork = 8 << 10

	// commandWork is what a command is beside its words, and writeWork what each of many
	// words is of one that writes, unless Command.WordWork says otherwise: a key or an
	// element has to be found, and there has to be room for it.
	commandWork = 4
	writeWork   = 2
	// mostFewWords is how many words few commands have too much to do with: nobody asks
	// about those of others then.
	mostFewWords = 256
)

// units is the work that elements and bytes are together.
func units(elements, bytes int) int { return elements + bytes/unitBytes }

// wordsWork is the work of a command of n words. The bytes of long words are no part of
// it: to hand them over to somebody else they have to be copied, too.
func (c *Command) wordsWork(n int) int {
	switch {
	case c.WordWork > 0:
		return n * c.WordWork
	case c.Flags&FlagWrite != 0:
		return n * writeWork
	}
	return n
}

// mayChange reports whether a command is one for CLIENT PAUSE WRITE.
func (c *Ctx) mayChange(cmd *Command, args [][]byte) bool {
	if cmd.Writes != nil {
		return cmd.Writes(c, cmd, args)
	}
	return cmd.Flags&FlagWrite != 0
}

// stays says why a command runs on its loop however many words it has; "" for those that
// do not.
func (c *Command) stays() string {
	switch {
	case c.Group == "connection":
		return "it is about its session, and is done with a word in no time"
	case c.subscribes(), c.Name == "watch":
		return "it goes on in slices"
	case c.Group == "transactions":
		return "EXEC asks for the transaction as a whole"
	case c.runsScript():
		return "what a script does is bounded where it runs"
	case c.Flags&FlagBlocking != 0:
		return "it may wait, as its session: popWork says how much it is"
	}
	return ""
}

// wordsLeave reports whether a command of n words, more than Command.fewWords, is to run beside the
// loops because of them. If not, they are counted against the turn, where dispatch has
// counted one unit each.
func (c *Ctx) wordsLeave(n int) bool {
	if c.Cmd.stays() != "" {
		return false
	}
	if work := c.Cmd.wordsWork(n); !c.leaves(work) {
		c.work -= n
		return false
	}
	return true
}

// FlagLinear is set on commands that may go through all elements of the collection that
// they name: a transaction that has one is as much work as that is large. Those that take
// elements from an end, and mostly few, are not. No client sees the flag.
const FlagLinear Flag = 1 << 30

// leaves reports whether a command that is about to do so many units is to do them
// beside the loops. If not, they are counted against its turn. Inside a transaction or
// script, and beside the loops, everything is done at once.
func (c *Ctx) leaves(units int) bool {
	if units <= loopWork || c.Client.exclusive || c.Client.beside {
		c.work += units
		return false
	}
	return true
}

// stay is leaves for what is found out with a collection locked: its error, which the
// function that the store has called returns, means that nothing has been done and that
// the command is run again, beside the loops.
func (c *Ctx) stay(units int) error {
	if c.leaves(units) {
		return errLeaves
	}
	return nil
}

// errLeaves is what stay returns.
var errLeaves = errors.New("to be done beside the loops")

// fewReads is of how many words the reads of a transaction may be before it is asked how
// long their values are: so many of them are no work.
const fewReads = 128

// transactionWork is the work of a transaction: of its commands, as far as their words
// tell, of the collections that those read which go through them, of the bytes of many
// values, of subscriptions, and of what is watched.
func (c *Ctx) transactionWork(t *transaction) int {
	n := t.work + sessionOf(c.Client).watching/watchCost*commandWork
	db, reads, begun := c.Client.selected(), 0, 0
	for i := range t.queue {
		q := &t.queue[i]
		switch {
		case n > loopWork:
			return n
		case q.cmd.spansKeyspace() && q.cmd.Flags&FlagFast == 0:
			return loopWork + 1 // KEYS and its kind
		case q.cmd.Name == "select":
			db = c.server.selects(q, db)
		case q.cmd.subscribes():
			n += sessionOf(c.Client).leaveAllWork(q, begun)
			begun += len(q.args) - 1
		case q.cmd.Flags&FlagLinear != 0:
			q.cmd.Keys.each(q.args, func(i int) { n += units(c.Store.Weigh(db, q.args[i])) })
		case q.cmd.repliesValues():
			if reads += len(q.args); reads > fewReads {
				n += units(0, copiedBy(c.Store, db, q.cmd, q.args))
			}
		}
	}
	return n
}
