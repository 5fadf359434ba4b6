package transactions

import (
	"sync"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// transaction is the queue of a session since MULTI.
type transaction struct {
	failed bool // a command was refused, so EXEC must abort
	queue  []queued
	bytes  int
	work   int          // of the queued arguments: see transactionWork
	refs   []env.KeyRef // reusable memory for EXEC

	// The memory for the latest arguments. Earlier arguments stay in previous slices.
	text  []byte
	words [][]byte
}

// keptTransaction is the largest capacity of the slices of a transaction that is reused.
const keptTransaction = 4 << 10

// transactions is the state of the group for the server.
type transactions struct {
	server *command.Server
	slot   command.Slot
	free   sync.Pool // of empty *transaction
}

// transactionsOf returns the state of the group. The running command must be of this group.
func transactionsOf(c *command.Call) *transactions { return command.ServerState[transactions](c) }

// clientTransaction is the state of MULTI and WATCH for a client.
type clientTransaction struct {
	tx       *transaction // nil outside of a transaction
	watched  any          // the store's token for the keys of WATCH, nil without any
	watching int          // the bytes of the watched keys
}

// of returns the state of a client, or nil.
func (m *transactions) of(cl *command.Client) *clientTransaction { return keptOf(m.slot, cl) }

// keptOf returns the state of a client for the group with that slot, or nil.
func keptOf(slot command.Slot, cl *command.Client) *clientTransaction {
	k, _ := slot.OfClient(cl).(*clientTransaction)
	return k
}

// make returns the state of a client, which is created at first use: most clients never have a
// transaction, and idle clients should be small.
func (m *transactions) make(cl *command.Client) *clientTransaction {
	return command.ClientState[clientTransaction](cl, m.slot)
}

// begin returns an empty transaction.
func (m *transactions) begin() *transaction {
	if t, ok := m.free.Get().(*transaction); ok {
		return t
	}
	return &transaction{}
}

// recycle takes a transaction that has ended back into the pool.
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

// own copies arguments into the transaction.
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

// queued is a command that waits for EXEC. Its arguments are copies.
type queued struct {
	cmd  *command.Command
	args [][]byte
}

// selects returns the database after a queued SELECT, given the one before. A SELECT that will
// fail does not change it.
func selects(e *command.Server, q *queued, db int) int {
	n, ok := arg.Int(q.args[1])
	if !ok || n < 0 || n >= int64(e.Limits().Databases) {
		return db
	}
	return int(n)
}
