package transactions

import (
	"sync"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
)

// transaction has the commands that a client has queued since MULTI.
type transaction struct {
	failed bool // a command was refused, so EXEC has to abort
	queue  []queued
	bytes  int
	work   int          // the work of the queued arguments, in units: see transactionWork
	refs   []env.KeyRef // reusable memory for EXEC

	// text and words have the memory for the arguments of the latest commands. The arguments of
	// earlier commands may be in slices that text and words had before.
	text  []byte
	words [][]byte
}

// keptTransaction is the maximum capacity of each slice of a transaction that is reused.
const keptTransaction = 4 << 10

// transactions has the state of this group for a server: a pool of transactions for reuse.
type transactions struct {
	server *command.Server
	slot   command.Slot
	free   sync.Pool // unused values of type *transaction
}

// transactionsOf returns the group's state of the server. The running command must belong to this
// group.
func transactionsOf(c *command.Call) *transactions { return command.ServerState[transactions](c) }

// clientTransaction is the state of the group for a client: the state of MULTI and WATCH.
type clientTransaction struct {
	tx       *transaction // the queued commands; nil outside of a transaction
	watched  any          // the store's token for the keys of WATCH; nil if there are none
	watching int          // the memory of the watched keys in bytes
}

// of returns the group's state of the client cl, or nil if there is none.
func (m *transactions) of(cl *command.Client) *clientTransaction { return keptOf(m.slot, cl) }

// keptOf returns the state that the group with the index slot keeps for the client cl, or nil if
// there is none.
func keptOf(slot command.Slot, cl *command.Client) *clientTransaction {
	k, _ := slot.OfClient(cl).(*clientTransaction)
	return k
}

// make returns what the group keeps for cl. It is created at the first use, because most clients
// never have a transaction, and idle clients should take little memory.
func (m *transactions) make(cl *command.Client) *clientTransaction {
	return command.ClientState[clientTransaction](cl, m.slot)
}

// begin returns an empty transaction. It reuses one from the pool if possible.
func (m *transactions) begin() *transaction {
	if t, ok := m.free.Get().(*transaction); ok {
		return t
	}
	return &transaction{}
}

// recycle returns t, which has ended, to the pool, unless one of its slices is too large.
func (m *transactions) recycle(t *transaction) {
	if cap(t.text) > keptTransaction || cap(t.words) > keptTransaction || cap(t.queue) > keptTransaction || cap(t.refs) > keptTransaction {
		return
	}
	clear(t.queue)
	clear(t.words)
	clear(t.refs[:cap(t.refs)])
	*t = transaction{queue: t.queue[:0], refs: t.refs[:0], text: t.text[:0], words: t.words[:0]}
	m.free.Put(t)
}

// own returns copies of args, in memory that the transaction owns.
func (t *transaction) own(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	if cap(t.text)-len(t.text) < size {
		t.text = make([]byte, 0, max(size, 256, min(2*cap(t.text), keptTransaction)))
	}
	if cap(t.words)-len(t.words) < len(args) {
		t.words = make([][]byte, 0, max(len(args), 16, min(2*cap(t.words), keptTransaction/16)))
	}
	from := len(t.words)
	for _, a := range args {
		at := len(t.text)
		t.text = append(t.text, a...)
		t.words = append(t.words, t.text[at:len(t.text):len(t.text)])
	}
	return t.words[from:len(t.words):len(t.words)]
}

// queued is a command that waits for EXEC. args are copies of its arguments.
type queued struct {
	cmd  *command.Command
	args [][]byte
}

// selects returns the database that is selected after q, a queued SELECT. db is the database before
// q. A SELECT that will fail does not change the database.
func selects(e *command.Server, q *queued, db int) int {
	n, ok := arg.Int(q.args[1])
	if !ok || n < 0 || n >= int64(e.Limits().Databases) {
		return db
	}
	return int(n)
}
