package commands

import (
	"slices"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func transactionCommands() []*Command {
	const flags = FlagNoScript | FlagLoading | FlagStale | FlagFast | FlagAllowBusy
	entry := func(name string, arity int, f Flag, syntax, summary, complexity, reply string, run func(*Ctx)) *Command {
		return &Command{
			Name: name, Arity: arity, Flags: f, Categories: CatTransaction, Group: "transactions", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	watch := entry("watch", -2, flags, "key [key ...]", "Makes the next EXEC fail if one of the keys changes before it.", "O(N)", "OK", watch)
	watch.Keys = KeySpec{First: 1, Last: -1, Step: 1}
	exec := entry("exec", 1, flags&^(FlagFast|FlagAllowBusy)|FlagSkipSlowlog, "", "Runs the queued commands at one instant.", "Depends on the commands.",
		"an array of their replies, or null when a watched key has changed", exec)
	exec.Writes = queueWrites
	return []*Command{
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
	maxQueued      = 1 << 16
	maxQueuedBytes = 16 << 20
	argCost        = 24  // of an argument, beside its bytes
	queuedCost     = 48  // of a command, beside its arguments
	watchCost      = 256 // of a watched key, beside its bytes
)

// transaction is what a session has queued since MULTI.
type transaction struct {
	active bool
	failed bool // a command was refused: EXEC must abort
	queue  []queued
	bytes  int
	work   int      // of the queue: see transactionWork
	refs   []KeyRef // scratch of EXEC

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
	cmd  *Command
	args [][]byte
}

// jumpsQueue lists the commands that act at once inside a transaction.
func (c *Command) jumpsQueue() bool {
	switch c.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}

// enqueue keeps the command for EXEC. It reports whether it did, or refused to:
// either way nothing runs now.
func (c *Ctx) enqueue(size int) bool {
	t := sessionOf(c.Client).tx
	if t == nil || !t.active || c.Cmd.jumpsQueue() {
		return false
	}
	switch {
	case c.Cmd.Flags&FlagNoMulti != 0:
		laneOf(c.Worker).reject(c, errNotInside)
	case c.Cmd.needsMemory() && c.Store.Full():
		laneOf(c.Worker).reject(c, resp.ErrOOM)
	case len(t.queue) >= maxQueued || t.bytes+size+argCost*len(c.Args)+queuedCost > maxQueuedBytes:
		laneOf(c.Worker).reject(c, errTransactionBig)
	default:
		t.queue = append(t.queue, queued{cmd: c.Cmd, args: t.own(c.Args)})
		t.bytes += size + argCost*len(c.Args) + queuedCost
		t.work += commandWork + units(c.Cmd.wordsWork(len(c.Args)), size)
		c.W.Status("QUEUED")
	}
	return true
}

// cloneArgs copies arguments into one piece of memory.
func cloneArgs(args [][]byte) [][]byte {
	out := make([][]byte, len(args))
	copyArgs(out, args)
	return out
}

// copyArgs fills out, which may be args, with copies of args in one piece of memory.
func copyArgs(out, args [][]byte) {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	own := make([]byte, 0, size)
	for i, a := range args {
		from := len(own)
		own = append(own, a...)
		out[i] = own[from:len(own):len(own)]
	}
}

// transaction returns the session's, made at first use: most sessions never have
// one, and idle ones should be small.
func (s *Session) transaction() *transaction {
	if s.tx == nil {
		s.tx = s.engine.newTransaction()
	}
	return s.tx
}

func multi(c *Ctx) {
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
func (s *Session) discardQueue(st Store) {
	s.unwatch(st)
	if s.tx != nil {
		s.engine.recycle(s.tx)
		s.tx = nil
	}
}

func discard(c *Ctx) {
	if sessionOf(c.Client).tx == nil || !sessionOf(c.Client).tx.active {
		c.Fail(errDiscardAlone)
		return
	}
	sessionOf(c.Client).discardQueue(c.Store)
	c.OK()
}

func watch(c *Ctx) {
	if sessionOf(c.Client).tx != nil && sessionOf(c.Client).tx.active {
		c.Fail(errWatchInside)
		return
	}
	tooMany := false
	c.inSlices(c.Args[1:], func(c *Ctx, key []byte) {
		if tooMany = tooMany || sessionOf(c.Client).watching+len(key)+watchCost > maxQueuedBytes; tooMany {
			return
		}
		sessionOf(c.Client).watching += len(key) + watchCost
		sessionOf(c.Client).watched = c.Store.Watch(sessionOf(c.Client).watched, c.Client.selected(), key)
	}, func(c *Ctx) {
		if tooMany {
			c.Fail(errWatchMany)
			return
		}
		c.OK()
	})
}

func unwatch(c *Ctx) {
	sessionOf(c.Client).unwatch(c.Store)
	c.OK()
}

func (s *Session) unwatch(st Store) {
	watched, many := s.watched, s.watching > sliceWords*watchCost
	if watched == nil {
		return
	}
	s.watched, s.watching = nil, 0
	if many && !s.beside { // nobody else knows of them
		s.engine.Spawn(func() { s.engine.WithStore(0, func(st Store) { st.Unwatch(watched) }) })
		return
	}
	st.Unwatch(watched)
}

// queueWrites reports whether EXEC changes something: whether a command of its queue does.
func queueWrites(c *Ctx, _ *Command, _ [][]byte) bool {
	t := sessionOf(c.Client).tx
	return t != nil && slices.ContainsFunc(t.queue, func(q queued) bool { return c.mayChange(q.cmd, q.args) })
}

// exec runs the queue with every shard that it touches locked, at one instant.
func exec(c *Ctx) {
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
	alone := c.runsLong(t)
	if !alone && !c.leaves(c.transactionWork(t)) {
		c.runTransaction(t)
		return
	}
	cmd := c.Cmd
	run := func(c *Ctx) {
		c.Cmd = cmd
		c.runTransaction(sessionOf(c.Client).tx)
		sessionOf(c.Client).endCaching(cmd)
	}
	if !alone {
		c.moveBeside(func(c *Ctx) { c.timed(cmd, run) })
		return
	}
	a := c.parkAlone(run)
	a.parked.kept = t.bytes + s.watching
	s.giveTransaction(a.stand)
	engineOf(c.server).enqueueAlone(a)
}

// runTransaction runs the queue of t, which is its session's, and ends it.
func (c *Ctx) runTransaction(t *transaction) {
	s := sessionOf(c.Client)
	if c.collect(t) {
		c.hold(t.refs, s.watched)
	} else {
		c.holdAll()
	}
	lacks, byItself := c.lacksMemory(t)
	if lacks {
		c.Store.Release()
		laneOf(c.Worker).reject(c, resp.ErrOOM)
		return
	}
	if c.journal != nil && c.lacksJournal(t) {
		c.Store.Release()
		laneOf(c.Worker).reject(c, c.refusal())
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
	c.exclusively(func() { c.runQueue(t) })
	laneOf(c.Worker).flushTop() // which has keys of the queue
	s.discardQueue(c.Store)
}

// lacksMemory reports whether memory is full and a command of t, whose keys are held,
// would need some: then nothing of it may happen. A limiter needs memory for a key that
// does not exist, and a script for whatever it writes, unless it says that it may when
// memory is full. If such a script is all that may change anything it finds out by itself,
// as outside of a transaction.
func (c *Ctx) lacksMemory(t *transaction) (lacks, byItself bool) {
	if !c.Store.Full() {
		return false, false
	}
	db, changes, scripts := c.Client.selected(), 0, 0
	lacks = slices.ContainsFunc(t.queue, func(q queued) bool {
		if c.mayChange(q.cmd, q.args) {
			changes++
		}
		switch {
		case q.cmd.Name == "select":
			db = c.server.selects(&q, db)
		case q.cmd.needsMemory():
			return true
		case q.cmd.runsScript():
			if laneOf(c.Worker).scriptMayChange(q.cmd, q.args) && !laneOf(c.Worker).scriptFlags(q.cmd, q.args).AllowOOM {
				scripts++
			}
		case q.cmd.Flags&(FlagDenyOOM|FlagModule) != 0: // a limiter; CL.THROTTLE's flags are a module's
			return slices.ContainsFunc(q.cmd.Keys.positions(q.args), func(i int) bool { return !c.Store.Exists(db, q.args[i]) })
		}
		return false
	})
	return lacks || scripts > 0 && changes > 1, scripts > 0
}

// runQueue replies an array with the outcome of every queued command. When that
// grows too large all commands run nonetheless, and the client, which cannot be told
// what became of them, is closed.
func (c *Ctx) runQueue(t *transaction) {
	l, s, cmd, args := laneOf(c.Worker), sessionOf(c.Client), c.Cmd, c.Args
	mark, tooLong := len(c.W.Buf), false
	c.W.Array(len(t.queue))
	for i, q := range t.queue {
		if i%aheadMost == 0 {
			c.prefetchQueue(t.queue[i:min(i+aheadMost, len(t.queue))])
		}
		c.Cmd, c.Args, c.fail = q.cmd, q.args, false
		if s.isStandIn && q.cmd.subscribes() {
			c.Fail(errSubscribeAlone)
		} else {
			l.run(c)
		}
		if tooLong = tooLong || c.W.Size(mark) > maxReply; tooLong {
			c.W.Cut(mark)
		} else if c.W.Pieces != nil {
			c.W.Spill(mark)
		}
	}
	s.closing = s.closing || tooLong
	c.Cmd, c.Args, c.fail = cmd, args, false
}

// prefetchQueue tells the store which keys are about to be used.
func (c *Ctx) prefetchQueue(queue []queued) {
	c.keys = c.keys[:0]
	for i := range queue {
		if q := &queue[i]; q.cmd.Keys.First == 1 && len(q.args) > 1 {
			c.keys = append(c.keys, q.args[1])
		}
	}
	if len(c.keys) > 1 {
		c.Store.Prefetch(c.Client.selected(), c.keys)
	}
}

// selects returns the database behind a queued SELECT, where db is selected before it. A
// SELECT that will fail changes nothing.
func (e *Server) selects(q *queued, db int) int {
	n, ok := parse.Int(q.args[1])
	if !ok || n < 0 || n >= int64(e.Limits().Databases) {
		return db
	}
	return int(n)
}

// collect gathers the keys of the queued commands with their databases, following
// SELECT. It returns false when a command is not confined to the keys it names.
func (c *Ctx) collect(t *transaction) bool {
	t.refs = t.refs[:0]
	db := c.Client.selected()
	for _, q := range t.queue {
		if q.cmd.spansKeyspace() {
			return false
		}
		if q.cmd.runsScript() {
			if s := laneOf(c.Worker).queuedScript(&q); s == nil || !s.confined {
				return false
			}
		}
		if q.cmd.Name == "select" {
			db = c.server.selects(&q, db)
			continue
		}
		if k := &q.cmd.Keys; k.Find == nil && k.First == k.Last && k.First > 0 && k.First < len(q.args) { // as positions, which makes a list
			t.refs = append(t.refs, KeyRef{DB: db, Key: q.args[k.First]})
			continue
		}
		for _, i := range q.cmd.Keys.positions(q.args) {
			t.refs = append(t.refs, KeyRef{DB: db, Key: q.args[i]})
		}
	}
	return true
}

// spansKeyspace reports whether the command reads or writes keys that it does not
// name.
func (c *Command) spansKeyspace() bool {
	return c.Categories&CatKeyspace != 0 && c.Keys.First == 0 && c.Keys.Find == nil || c.Name == "info" || c.Name == "memory|stats"
}
