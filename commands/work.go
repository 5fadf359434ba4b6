package commands

import "github.com/cellserver/cellserver/commands/command"

// This file is the one place that says how much a command may do on an event loop.
// Work is counted in units, of which about ten take a microsecond: a word of a command,
// an element that is looked at, or command.unitBytes bytes that are copied.
//
// What a command does is known at one of three times. Its words are there before it
// runs: [Lane.dispatch] asks wordsLeave. What it does to a collection is known once that
// is found: the handler asks [command.Ctx.Leaves] or [command.Ctx.Stay] before it changes anything.
// A transaction is the sum of its commands: EXEC asks transactionWork. Whatever would do
// more than command.LoopWork then runs beside the loops (beside.go), or in slices (slices.go).

const (
	// turnWork is how many units a turn may do before others have theirs.
	turnWork = 8 << 10
)

// wordsLeave reports whether a command of n words, more than Command.FewWords, is to run beside the
// loops because of them. If not, they are counted against the turn, where dispatch has
// counted one unit each.
func wordsLeave(c *command.Call, n int) bool {
	if c.Cmd.Stays() != "" {
		return false
	}
	if work := c.Cmd.WordsWork(n); !c.Leaves(work) {
		c.Work -= n
		return false
	}
	return true
}

// fewReads is of how many words the reads of a transaction may be before it is asked how
// long their values are: so many of them are no work.
const fewReads = 128

// transactionWork is the work of a transaction: of its commands, as far as their words
// tell, of the collections that those read which go through them, of the bytes of many
// values, of subscriptions, and of what is watched.
func transactionWork(c *command.Call, t *transaction) int {
	n := t.work + sessionOf(c.Client).watching/command.WatchCost*command.CommandWork
	db, reads, begun := c.Client.Selected(), 0, 0
	for i := range t.queue {
		q := &t.queue[i]
		switch {
		case n > command.LoopWork:
			return n
		case q.cmd.SpansKeyspace() && q.cmd.Flags&command.FlagFast == 0:
			return command.LoopWork + 1 // KEYS and its kind
		case q.cmd.Name == "select":
			db = selects(c.Server, q, db)
		case q.cmd.Subscribes():
			n += sessionOf(c.Client).leaveAllWork(q, begun)
			begun += len(q.args) - 1
		case q.cmd.Flags&command.FlagLinear != 0:
			q.cmd.Keys.Each(q.args, func(i int) { n += command.Units(c.Store.Weigh(db, q.args[i])) })
		case q.cmd.RepliesValues():
			if reads += len(q.args); reads > fewReads {
				n += command.Units(0, command.CopiedBy(c.Store, db, q.cmd, q.args))
			}
		}
	}
	return n
}
