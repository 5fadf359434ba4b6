package transactions

import (
	"sync"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// transaction is what a session has queued since MULTI.
type transaction struct {
	failed bool // a command was refused: EXEC must abort
	queue  []queued
	bytes  int
	work   int          // of the queue: see transactionWork
	refs   []env.KeyRef // scratch of EXEC

	// Where the latest arguments are; those before stay where they were.
	text  []byte
	words [][]byte
}

// keptTransaction is how much of each a transaction may have grown to that is used
// again.
const keptTransaction = 4 << 10

// transactions is what the group keeps for the server.
type transactions struct {
	server *command.Server
	slot   command.Slot
	free   sync.Pool // of *transaction, which are empty
}

// transactionsOf is what the group of the running command, which is this one, keeps.
func transactionsOf(c *command.Call) *transactions { return command.ServerState[transactions](c) }

// clientTransaction is what MULTI and WATCH keep of a client.
type clientTransaction struct {
	tx       *transaction // nil outside of a transaction
	watched  any          // the store's token for the keys of WATCH, nil if there are none
	watching int          // bytes that these take
}

// of is what is kept of a client, nil if that is nothing.
func (m *transactions) of(cl *command.Client) *clientTransaction { return keptOf(m.slot, cl) }

// keptOf is what the group with that slot keeps of a client, nil if that is nothing.
func keptOf(slot command.Slot, cl *command.Client) *clientTransaction {
	k, _ := slot.OfClient(cl).(*clientTransaction)
	return k
}

// make is of, made at first use: most clients never have a transaction, and idle ones
// should be small.
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

// recycle takes back a transaction that has ended.
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

// queued is a command that waits for EXEC; its arguments are copies.
type queued struct {
	cmd  *command.Command
	args [][]byte
}

// selects returns the database behind a queued SELECT, where db is selected before it. A
// SELECT that will fail changes nothing.
func selects(e *command.Server, q *queued, db int) int {
	n, ok := arg.Int(q.args[1])
	if !ok || n < 0 || n >= int64(e.Limits().Databases) {
		return db
	}
	return int(n)
}
