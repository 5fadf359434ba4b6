package commands

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func transactionCommands() []*command.Command {
	const flags = command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagAllowBusy
	entry := func(name string, arity int, f command.Flag, syntax, summary, complexity, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f, Categories: command.CatTransaction, Group: "transactions", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	watch := entry("watch", -2, flags, "key [key ...]", "Makes the next EXEC fail if one of the keys changes before it.", "O(N)", "OK", watch)
	watch.Keys = command.KeySpec{First: 1, Last: -1, Step: 1}
	exec := entry("exec", 1, flags&^(command.FlagFast|command.FlagAllowBusy)|command.FlagSkipSlowlog, "", "Runs the queued commands at one instant.", "Depends on the commands.",
		"an array of their replies, or null when a watched key has changed", exec)
	exec.Writes = queueWrites
	return []*command.Command{
		entry("multi", 1, flags, "", "Starts a transaction.", "O(1)", "OK", multi),
		exec,
		entry("discard", 1, flags, "", "Drops the queued commands.", "O(N)", "OK", discard),
		watch,
		entry("unwatch", 1, flags, "", "Forgets the watched keys.", "O(N)", "OK", unwatch),
	}
}

const (
	errNestedMulti    resp.Error = "ERR MULTI calls can not be nested"
	errExecAlone      resp.Error = "ERR EXEC without MULTI"
	errDiscardAlone   resp.Error = "ERR DISCARD without MULTI"
	errWatchInside    resp.Error = "ERR WATCH inside MULTI is not allowed"
	errNotInside      resp.Error = "ERR Command not allowed inside a transaction"
	errExecAbort      resp.Error = "EXECABORT Transaction discarded because of previous errors."
	errTransactionBig resp.Error = "ERR the transaction is too large"
	errSubscribeAlone resp.Error = "ERR subscriptions cannot change in a transaction that may take long"
	errWatchMany      resp.Error = "ERR too many watched keys"
)

// What one transaction may queue and watch, in commands and in bytes of memory.
// Redis has no bound here; without one a client could fill the memory with commands
// that never run.
const (
	maxQueued = 1 << 16
)

// transaction is what a session has queued since MULTI.
type transaction struct {
	active bool
	failed bool // a command was refused: EXEC must abort
	queue  []queued
	bytes  int
	work   int              // of the queue: see transactionWork
	refs   []command.KeyRef // scratch of EXEC

	// Where the latest arguments are; those before stay where they were.
	text  []byte
	words [][]byte
}

// keptTransaction is how much of each a transaction may have grown to that is used
// again.
const keptTransaction = 4 << 10

// newTransaction returns an empty transaction.
func (e *Engine) newTransaction() *transaction {
	if t, ok := e.transactions.Get().(*transaction); ok {
		return t
	}
	return &transaction{}
}

// recycle takes back a transaction that has ended.
func (e *Engine) recycle(t *transaction) {
	if cap(t.text) > keptTransaction || cap(t.words) > keptTransaction || cap(t.queue) > keptTransaction || cap(t.refs) > keptTransaction {
		return
	}
	clear(t.queue)
	clear(t.words)
	clear(t.refs[:cap(t.refs)])
	*t = transaction{queue: t.queue[:0], refs: t.refs[:0], text: t.text[:0], words: t.words[:0]}
	e.transactions.Put(t)
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

// jumpsQueue lists the commands that act at once inside a transaction.
func jumpsQueue(c *command.Command) bool {
	switch c.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}

// enqueue keeps the command for EXEC. It reports whether it did, or refused to:
// either way nothing runs now.
func enqueue(c *command.Call, size int) bool {
	t := sessionOf(c.Client).tx
	if t == nil || !t.active || jumpsQueue(c.Cmd) {
		return false
	}
	switch {
	case c.Cmd.Flags&command.FlagNoMulti != 0:
		laneOf(c.Worker).reject(c, errNotInside)
	case c.Cmd.NeedsMemory() && c.Store.Full():
		laneOf(c.Worker).reject(c, resp.ErrOOM)
	case len(t.queue) >= maxQueued || t.bytes+size+command.ArgCost*len(c.Args)+command.QueuedCost > command.MaxQueuedBytes:
		laneOf(c.Worker).reject(c, errTransactionBig)
	default:
		t.queue = append(t.queue, queued{cmd: c.Cmd, args: t.own(c.Args)})
		t.bytes += size + command.ArgCost*len(c.Args) + command.QueuedCost
		t.work += command.CommandWork + command.Units(c.Cmd.WordsWork(len(c.Args)), size)
		c.W.Status("QUEUED")
	}
	return true
}

// transaction returns the session's, made at first use: most sessions never have
// one, and idle ones should be small.
func (s *Session) transaction() *transaction {
	if s.tx == nil {
		s.tx = s.engine.newTransaction()
	}
	return s.tx
}

func multi(c *command.Call) {
	t := sessionOf(c.Client).transaction()
	if t.active {
		c.Fail(errNestedMulti)
		return
	}
	t.active = true
	c.OK()
}

// failTransaction makes the EXEC to come abort, after a command that could not be
// queued.
func (s *transactionState) failTransaction() {
	if s.tx != nil && s.tx.active {
		s.tx.failed = true
	}
}

// discardQueue ends the transaction and forgets the watched keys.
func (s *Session) discardQueue(st command.Store) {
	s.unwatch(st)
	if s.tx != nil {
		s.engine.recycle(s.tx)
		s.tx = nil
	}
}

func discard(c *command.Call) {
	if sessionOf(c.Client).tx == nil || !sessionOf(c.Client).tx.active {
		c.Fail(errDiscardAlone)
		return
	}
	sessionOf(c.Client).discardQueue(c.Store)
	c.OK()
}

func watch(c *command.Call) {
	if sessionOf(c.Client).tx != nil && sessionOf(c.Client).tx.active {
		c.Fail(errWatchInside)
		return
	}
	tooMany := false
	c.InSlices(c.Args[1:], func(c *command.Call, key []byte) {
		if tooMany = tooMany || sessionOf(c.Client).watching+len(key)+command.WatchCost > command.MaxQueuedBytes; tooMany {
			return
		}
		sessionOf(c.Client).watching += len(key) + command.WatchCost
		sessionOf(c.Client).watched = c.Store.Watch(sessionOf(c.Client).watched, c.Client.Selected(), key)
	}, func(c *command.Call) {
		if tooMany {
			c.Fail(errWatchMany)
			return
		}
		c.OK()
	})
}

func unwatch(c *command.Call) {
	sessionOf(c.Client).unwatch(c.Store)
	c.OK()
}

func (s *Session) unwatch(st command.Store) {
	watched, many := s.watched, s.watching > command.SliceWords*command.WatchCost
	if watched == nil {
		return
	}
	s.watched, s.watching = nil, 0
	if many && !s.Beside { // nobody else knows of them
		s.engine.Spawn(func() { s.engine.WithStore(0, func(st command.Store) { st.Unwatch(watched) }) })
		return
	}
	st.Unwatch(watched)
}

// queueWrites reports whether EXEC changes something: whether a command of its queue does.
func queueWrites(c *command.Call, _ *command.Command, _ [][]byte) bool {
	t := sessionOf(c.Client).tx
	return t != nil && slices.ContainsFunc(t.queue, func(q queued) bool { return c.MayChange(q.cmd, q.args) })
}

// exec runs the queue with every shard that it touches locked, at one instant.
func exec(c *command.Call) {
	s := sessionOf(c.Client)
	t := s.tx
	switch {
	case t == nil || !t.active:
		c.Fail(errExecAlone)
		return
	case t.failed:
		s.discardQueue(c.Store)
		c.Fail(errExecAbort)
		return
	}
	t.active = false
	alone := runsLong(c, t)
	if !alone && !c.Leaves(transactionWork(c, t)) {
		runTransaction(c, t)
		return
	}
	cmd := c.Cmd
	run := func(c *command.Call) {
		c.Cmd = cmd
		runTransaction(c, sessionOf(c.Client).tx)
		sessionOf(c.Client).endCaching(cmd)
	}
	if !alone {
		c.MoveBeside(func(c *command.Call) { timed(c, cmd, run) })
		return
	}
	a := parkAlone(c, run)
	a.parked.Kept = t.bytes + s.watching
	s.giveTransaction(a.stand)
	engineOf(c.Server).enqueueAlone(a)
}

// runTransaction runs the queue of t, which is its session's, and ends it.
func runTransaction(c *command.Call, t *transaction) {
	s := sessionOf(c.Client)
	if collect(c, t) {
		hold(c, t.refs, s.watched)
	} else {
		holdAll(c)
	}
	lacks, byItself := lacksMemory(c, t)
	if lacks {
		c.Store.Release()
		laneOf(c.Worker).reject(c, resp.ErrOOM)
		return
	}
	if c.Journal != nil && lacksJournal(c, t) {
		c.Store.Release()
		laneOf(c.Worker).reject(c, c.Refusal())
		return
	}
	if s.watched != nil && c.Store.Changed(s.watched) {
		c.Store.Release()
		s.discardQueue(c.Store)
		c.W.NullArray()
		return
	}
	if !byItself {
		c.Store.Begin()
	}
	exclusively(c, func() { runQueue(c, t) })
	c.Server.Commands.BatchEnd(c.Worker) // which has keys of the queue
	s.discardQueue(c.Store)
}

// lacksMemory reports whether memory is full and a command of t, whose keys are held,
// would need some: then nothing of it may happen. A limiter needs memory for a key that
// does not exist, and a script for whatever it writes, unless it says that it may when
// memory is full. If such a script is all that may change anything it finds out by itself,
// as outside of a transaction.
func lacksMemory(c *command.Call, t *transaction) (lacks, byItself bool) {
	if !c.Store.Full() {
		return false, false
	}
	db, changes, scripts := c.Client.Selected(), 0, 0
	lacks = slices.ContainsFunc(t.queue, func(q queued) bool {
		if c.MayChange(q.cmd, q.args) {
			changes++
		}
		switch {
		case q.cmd.Name == "select":
			db = selects(c.Server, &q, db)
		case q.cmd.NeedsMemory():
			return true
		case q.cmd.RunsScript():
			if laneOf(c.Worker).scriptMayChange(q.cmd, q.args) && !laneOf(c.Worker).scriptFlags(q.cmd, q.args).AllowOOM {
				scripts++
			}
		case q.cmd.Flags&(command.FlagDenyOOM|command.FlagModule) != 0: // a limiter; CL.THROTTLE's flags are a module's
			return slices.ContainsFunc(q.cmd.Keys.Positions(q.args), func(i int) bool { return !c.Store.Exists(db, q.args[i]) })
		}
		return false
	})
	return lacks || scripts > 0 && changes > 1, scripts > 0
}

// runQueue replies an array with the outcome of every queued command. When that
// grows too large all commands run nonetheless, and the client, which cannot be told
// what became of them, is closed.
func runQueue(c *command.Call, t *transaction) {
	l, s, cmd, args := laneOf(c.Worker), sessionOf(c.Client), c.Cmd, c.Args
	mark, tooLong := len(c.W.Buf), false
	c.W.Array(len(t.queue))
	for i, q := range t.queue {
		if i%command.AheadMost == 0 {
			prefetchQueue(c, t.queue[i:min(i+command.AheadMost, len(t.queue))])
		}
		c.Cmd, c.Args, c.Failed = q.cmd, q.args, false
		if s.IsStandIn && q.cmd.Subscribes() {
			c.Fail(errSubscribeAlone)
		} else {
			l.run(c)
		}
		if tooLong = tooLong || c.W.Size(mark) > command.MaxReply; tooLong {
			c.W.Cut(mark)
		} else if c.W.Pieces != nil {
			c.W.Spill(mark)
		}
	}
	s.Closing = s.Closing || tooLong
	c.Cmd, c.Args, c.Failed = cmd, args, false
}

// prefetchQueue tells the store which keys are about to be used.
func prefetchQueue(c *command.Call, queue []queued) {
	c.Keys = c.Keys[:0]
	for i := range queue {
		if q := &queue[i]; q.cmd.Keys.First == 1 && len(q.args) > 1 {
			c.Keys = append(c.Keys, q.args[1])
		}
	}
	if len(c.Keys) > 1 {
		c.Store.Prefetch(c.Client.Selected(), c.Keys)
	}
}

// selects returns the database behind a queued SELECT, where db is selected before it. A
// SELECT that will fail changes nothing.
func selects(e *command.Server, q *queued, db int) int {
	n, ok := parse.Int(q.args[1])
	if !ok || n < 0 || n >= int64(e.Limits().Databases) {
		return db
	}
	return int(n)
}

// collect gathers the keys of the queued commands with their databases, following
// SELECT. It returns false when a command is not confined to the keys it names.
func collect(c *command.Call, t *transaction) bool {
	t.refs = t.refs[:0]
	db := c.Client.Selected()
	for _, q := range t.queue {
		if q.cmd.SpansKeyspace() {
			return false
		}
		if q.cmd.RunsScript() {
			if s := laneOf(c.Worker).queuedScript(&q); s == nil || !s.confined {
				return false
			}
		}
		if q.cmd.Name == "select" {
			db = selects(c.Server, &q, db)
			continue
		}
		if k := &q.cmd.Keys; k.Find == nil && k.First == k.Last && k.First > 0 && k.First < len(q.args) { // as positions, which makes a list
			t.refs = append(t.refs, command.KeyRef{DB: db, Key: q.args[k.First]})
			continue
		}
		for _, i := range q.cmd.Keys.Positions(q.args) {
			t.refs = append(t.refs, command.KeyRef{DB: db, Key: q.args[i]})
		}
	}
	return true
}
