package transactions

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// What EXEC asks of its queue before it runs.

// fewReads is of how many words the reads of a transaction may be before it is asked how
// long their values are: so many of them are no work.
const fewReads = 128

// transactionWork is the work of a transaction: of its commands, as far as their words
// tell, of the collections that those read which go through them, of the bytes of many
// values, of subscriptions, and of what is watched.
func transactionWork(c *command.Call, k *clientTransaction) int {
	t := k.tx
	n := t.work + k.watching/command.WatchCost*command.CommandWork
	db, reads, begun := c.Client.Selected(), 0, 0
	for i := range t.queue {
		q := &t.queue[i]
		switch {
		case n > command.MaxLoopWork:
			return n
		case q.cmd.SpansKeyspace() && q.cmd.Flags&command.FlagFast == 0:
			return command.MaxLoopWork + 1 // KEYS and its kind
		case q.cmd.Name == "select":
			db = selects(c.Server, q, db)
		case q.cmd.Work != nil:
			n += q.cmd.Work(c, q.cmd, q.args, begun)
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

// halted says why the server as a part of replication refuses a command of t: it may have become
// a replica since they were queued. Then nothing of t happens.
func halted(c *command.Call, t *transaction) resp.Error {
	if c.Server.Halts.Load()&command.HaltStandby == 0 {
		return ""
	}
	for i := range t.queue {
		if err := c.Halted(t.queue[i].cmd, t.queue[i].args); err != "" {
			return err
		}
	}
	return ""
}

// lacksJournal reports whether effects cannot be kept and t, whose keys are locked, would
// have some: then nothing of it may happen, as in Redis, no message of it either. Limiters
// that are all it has, and a script that is, are asked one by one: what only looks is
// answered, and of the others none has an effect.
func lacksJournal(c *command.Call, t *transaction) bool {
	if !c.Journal.Refuses() {
		return false
	}
	scripts, limiters, others := 0, 0, 0
	for _, q := range t.queue {
		switch {
		case !c.MayChange(q.cmd, q.args):
		case q.cmd.Plan != nil:
			scripts++
		case q.cmd.Flags&command.FlagWrite == 0:
			others++ // a message
		case q.cmd.Categories&command.CatRateLimit == 0 && q.cmd.Flags&command.FlagModule == 0:
			return true
		default:
			limiters++
		}
	}
	return scripts > 0 && scripts+limiters+others > 1 || limiters > 0 && others > 0
}

// runsLong reports whether a command of the transaction may take long: a script with a
// loop, or one that has to be compiled. A script that SCRIPT FLUSH of another takes away
// meanwhile is compiled again in the transaction, but it is the same script.
func runsLong(c *command.Call, t *transaction) bool {
	for i := range t.queue {
		if q := &t.queue[i]; q.cmd.Plan != nil && q.cmd.Plan(c, q.cmd, q.args).Long {
			return true
		}
	}
	return false
}

// queueReplySize is about how many bytes the replies of a transaction copy.
func queueReplySize(cl *command.Client, st env.Store, exec *command.Command, _ [][]byte) (n int) {
	k := keptOf(exec.Slot(), cl)
	if k == nil || k.tx == nil {
		return 0
	}
	db := cl.Selected()
	for i := range k.tx.queue {
		q := &k.tx.queue[i]
		if q.cmd.Name == "select" {
			db = selects(cl.Server, q, db)
			continue
		}
		if n += command.CopiedBy(st, db, q.cmd, q.args); n > command.MaxReply {
			break
		}
	}
	return n
}
