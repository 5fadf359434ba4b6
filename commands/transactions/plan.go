package transactions

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// This file has the checks that EXEC makes before it runs the queue.

// fewReads is the number of arguments of reading commands up to which the lengths of the values
// that they read do not count as work.
const fewReads = 128

// transactionWork returns the work, in units, of the transaction in k. It is the sum of the work of
// the arguments of its commands, of the collections that they read completely, of the bytes of many
// values, of subscriptions, and of the watched keys. A result above command.MaxLoopWork is not
// exact.
func transactionWork(c *command.Call, k *clientTransaction) int {
	t, st := k.tx, storeOf(c)
	n := t.work + k.watching/command.WatchCost*command.CommandWork
	db, reads, begun := c.Client.Selected(), 0, 0
	for i := range t.queue {
		q := &t.queue[i]
		switch {
		case n > command.MaxLoopWork:
			return n
		case q.cmd.SpansKeyspace() && q.cmd.Flags&command.FlagFast == 0:
			return command.MaxLoopWork + 1 // the command is KEYS or a similar one
		case q.cmd.Flags&command.FlagSelects != 0:
			db = selects(c.Server, q, db)
		case q.cmd.Work != nil:
			n += q.cmd.Work(c, q.cmd, q.args, begun)
			begun += len(q.args) - 1
		case q.cmd.Flags&command.FlagLinear != 0:
			if st != nil {
				q.cmd.Keys.Each(q.args, func(i int) { n += command.Units(st.Weigh(db, q.args[i])) })
			}
		case q.cmd.RepliesValues():
			if reads += len(q.args); reads > fewReads {
				n += command.Units(0, command.CopiedBy(c.Store, db, q.cmd, q.args))
			}
		}
	}
	return n
}

// halted returns the error if the server, because of its role, may not run a command of t; "" if it
// may run all. The whole transaction is then refused. The server may have become a replica since
// the commands were queued.
func halted(c *command.Call, t *transaction) resp.Error {
	if c.Server.Halts.Load()&command.HaltReplication == 0 {
		return ""
	}
	for i := range t.queue {
		if err := c.Halted(t.queue[i].cmd, t.queue[i].args); err != "" {
			return err
		}
	}
	return ""
}

// lacksJournal reports whether the transaction is refused because the journal cannot accept effects
// now. As in Redis, the whole transaction is then refused, including its messages. The keys of t
// are locked. A transaction is not refused if all of its commands that may change something publish
// messages, or all are limiters, or the only one is a script. A limiter or script is checked when
// it runs, so that calls which only read are answered and the others have no effect.
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
			others++ // the command is PUBLISH or SPUBLISH
		case q.cmd.Categories&command.CatRateLimit == 0 && q.cmd.Flags&command.FlagModule == 0:
			return true
		default:
			limiters++
		}
	}
	return scripts > 0 && scripts+limiters+others > 1 || limiters > 0 && others > 0
}

// runsLong reports whether a command of t may take long: a script with a loop, or a script that is
// not in the cache. A script that another client removes from the cache by SCRIPT FLUSH after this
// check is compiled again in the transaction, but is the same script.
func runsLong(c *command.Call, t *transaction) bool {
	for i := range t.queue {
		if q := &t.queue[i]; q.cmd.Plan != nil && q.cmd.Plan(c, q.cmd, q.args).Long {
			return true
		}
	}
	return false
}

// queueReplySize is the ReplySize function of EXEC: it returns about how many bytes the replies of
// the queued commands copy. It stops counting beyond [command.MaxReply].
func queueReplySize(cl *command.Client, st env.Store, exec *command.Command, _ [][]byte) (n int) {
	k := keptOf(exec.Slot(), cl)
	if k == nil || k.tx == nil {
		return 0
	}
	db := cl.Selected()
	for i := range k.tx.queue {
		q := &k.tx.queue[i]
		if q.cmd.Flags&command.FlagSelects != 0 {
			db = selects(cl.Server, q, db)
			continue
		}
		if n += command.CopiedBy(st, db, q.cmd, q.args); n > command.MaxReply {
			break
		}
	}
	return n
}
