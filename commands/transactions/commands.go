package transactions

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// store is the part of the store that EXEC uses if the keys are in this process. With --store, a
// Remote has the keys: then EXEC locks no keys and checks no watched ones, and the Remote decides
// the asks of the queue together.
type store interface {
	env.Store
	env.Watcher
	env.Keys
	env.Inspector
}

// storeCall is a call of WATCH.
type storeCall = command.CallOn[env.Watcher]

// storeOf returns the store of c if that has keys, and otherwise nil.
func storeOf(c *command.Call) store {
	st, _ := c.Store.(store)
	return st
}

// Group returns the command group of MULTI, EXEC, DISCARD, WATCH and UNWATCH.
func Group() command.Group {
	return command.Group{
		Commands: transactionCommands(),
		Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
			t := &transactions{server: s, slot: slot}
			return t, command.Hooks{
				Intercept: t.enqueue, Rejected: t.rejected, NeedsStore: t.needsStore, Transfer: t.transfer,
				Reset: t.reset, Kept: t.kept, Closed: t.closed,
			}
		},
	}
}

func transactionCommands() []*command.Command {
	const flags = command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagAllowBusy | command.FlagFence | command.FlagConnection
	const local = flags | command.FlagLocal

	return command.Entries(command.Defaults{
		Categories: command.CatTransaction, Group: "transactions", Since: "1.0.0", Complexity: "O(N)",
	}, []*command.Command{
		{
			Name: "multi", Arity: 1, Flags: local | command.FlagImmediate,
			Summary: "Starts a transaction.", Complexity: "O(1)", Reply: "OK", Run: multi,
		},
		{
			Name: "exec", Arity: 1,
			Flags:   local&^(command.FlagFast|command.FlagAllowBusy) | command.FlagSkipSlowlog | command.FlagImmediate | command.FlagUnwatches,
			Summary: "Runs the queued commands at one instant.", Complexity: "Depends on the commands.",
			Reply: "an array of their replies, or null when a watched key has changed", Run: exec, Writes: queueWrites,
			Rejected: rejectExec, ReplySize: queueReplySize,
		},
		{
			Name: "discard", Arity: 1, Flags: local | command.FlagImmediate | command.FlagUnwatches,
			Summary: "Drops the queued commands.", Reply: "OK", Run: discard,
		},
		{
			Name: "watch", Arity: -2, Flags: flags | command.FlagImmediate,
			Keys:    command.KeySpec{First: 1, Last: -1, Step: 1, Use: command.UsesNothing},
			Summary: "Makes the next EXEC fail if one of the keys changes before it.", Syntax: "key [key ...]", Reply: "OK", RunOn: command.On(watch),
		},
		{
			Name: "unwatch", Arity: 1, Flags: flags | command.FlagUnwatches,
			Summary: "Forgets the watched keys.", Reply: "OK", Run: unwatch,
		},
	})
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

const (
	// maxQueued is the maximum number of commands in the queue of a transaction.
	// command.MaxQueuedBytes bounds the memory of the queue, and also the memory of the watched
	// keys of a client. Redis has no such bounds; without them a client could fill the memory with
	// commands that never run.
	maxQueued = 1 << 16
)

// enqueue is the Intercept hook: it queues the command of c for EXEC and replies with QUEUED, or
// refuses the command. It returns false if the command has to run at once. size is the length of
// the command in bytes.
func (m *transactions) enqueue(c *command.Call, size int) bool {
	if c.Cmd.Flags&command.FlagImmediate != 0 {
		return false
	}
	t := m.of(c.Client).tx
	switch {
	case c.Cmd.Flags&command.FlagNoMulti != 0:
		c.Server.Host.Calls.Reject(c, errNotInside)
	case c.Cmd.NeedsMemory() && c.Full():
		c.Server.Host.Calls.Reject(c, resp.ErrOOM)
	case len(t.queue) >= maxQueued || t.bytes+size+command.ArgCost*len(c.Args)+command.QueuedCost > command.MaxQueuedBytes:
		c.Server.Host.Calls.Reject(c, errTransactionBig)
	default:
		t.queue = append(t.queue, queued{cmd: c.Cmd, args: t.own(c.Args)})
		t.bytes += size + command.ArgCost*len(c.Args) + command.QueuedCost
		t.work += command.CommandWork + command.Units(c.Cmd.WordsWork(len(c.Args)), size)
		c.W.Status("QUEUED")
	}
	return true
}

func multi(c *command.Call) {
	m := transactionsOf(c)
	k := m.make(c.Client)
	if k.tx != nil {
		c.Fail(errNestedMulti)
		return
	}
	k.tx = m.begin()
	c.Client.Mark(command.MarkQueuing, true)
	c.OK()
}

// rejected is the Rejected hook: it makes the next EXEC abort, because a command of the transaction
// was refused.
func (m *transactions) rejected(c *command.Call) {
	if c.Client.Marks&command.MarkQueuing != 0 {
		m.of(c.Client).tx.failed = true
	}
}

// rejectExec is the Rejected function of EXEC: it ends the transaction and returns the reply for e,
// the error with which EXEC was refused.
func rejectExec(c *command.Call, e resp.Error) resp.Error {
	transactionsOf(c).discard(c.Client, c.Store)
	return resp.Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(string(e), "ERR "))
}

// discard ends the transaction of cl, if there is one, and all its watches of keys.
func (m *transactions) discard(cl *command.Client, st env.Store) {
	m.unwatch(cl, st)
	if k := m.of(cl); k != nil && k.tx != nil {
		m.recycle(k.tx)
		k.tx = nil
		cl.Mark(command.MarkQueuing, false)
	}
}

func discard(c *command.Call) {
	if c.Client.Marks&command.MarkQueuing == 0 {
		c.Fail(errDiscardAlone)
		return
	}
	transactionsOf(c).discard(c.Client, c.Store)
	c.OK()
}

// reset is the Reset hook: it discards the transaction of the client of c, and ends its watches of
// keys.
func (m *transactions) reset(c *command.Call) (more bool) {
	m.discard(c.Client, c.Store)
	return false
}

func watch(c storeCall) {
	if c.Client.Marks&command.MarkQueuing != 0 {
		c.Fail(errWatchInside)
		return
	}
	tooMany, k := false, transactionsOf(c.Call).make(c.Client)
	c.InSlices(c.Args[1:], func(c storeCall, key []byte) {
		if tooMany = tooMany || k.watching+len(key)+command.WatchCost > command.MaxQueuedBytes; tooMany {
			return
		}
		k.watching += len(key) + command.WatchCost
		k.watched = c.Store.Watch(k.watched, c.Client.Selected(), key)
	}, func(c storeCall) {
		if tooMany {
			c.Fail(errWatchMany)
			return
		}
		c.OK()
	})
}

func unwatch(c *command.Call) {
	transactionsOf(c).unwatch(c.Client, c.Store)
	c.OK()
}

func (m *transactions) unwatch(cl *command.Client, st env.Store) {
	k := m.of(cl)
	if k == nil || k.watched == nil {
		return
	}
	watched, many := k.watched, k.watching > command.SliceWords*command.WatchCost
	k.watched, k.watching = nil, 0
	if many && !cl.Background { // this goroutine may end the watches itself, because no other one refers to the token
		m.forget(watched)
		return
	}
	st.(env.Watcher).Unwatch(watched) // the assertion holds, because WATCH has made the token by a store of the same type
}

// forget makes another goroutine end the watches of the token watched.
func (m *transactions) forget(watched any) {
	host := &m.server.Host
	host.Work.Spawn(func() { host.Work.WithStore(0, func(st env.Store) { st.(env.Watcher).Unwatch(watched) }) })
}

// closed is the Closed hook: it ends the watches of the disconnected client cl.
func (m *transactions) closed(cl *command.Client) {
	if k := m.of(cl); k != nil && k.watched != nil {
		m.forget(k.watched)
	}
}

// needsStore is the NeedsStore hook: it reports whether cmd, which may run while a script is busy,
// would wait for locks of the script. This is the case for WATCH, and for a command that ends
// watches if cl watches keys.
func (m *transactions) needsStore(cl *command.Client, cmd *command.Command) bool {
	switch {
	case cmd.Flags&command.FlagAllowBusy != 0 && !cmd.Keys.None(): // this command is WATCH
		return true
	case cmd.Flags&command.FlagUnwatches != 0:
		k := m.of(cl)
		return k != nil && k.watched != nil
	}
	return false
}

// kept is the Kept hook: it returns the memory, in bytes, of the transaction and the watched keys
// of cl, and the number of queued commands; -1 outside of a transaction.
func (m *transactions) kept(cl *command.Client) (bytes, queued int) {
	k := m.of(cl)
	if k == nil {
		return 0, -1
	}
	if cl.Marks&command.MarkQueuing == 0 {
		return k.watching, -1
	}
	return k.watching + k.tx.bytes, len(k.tx.queue)
}

// transfer is the Transfer hook: it moves the transaction of cl and its watches to proxy, and
// returns the memory, in bytes, that they take. It moves nothing if there is no transaction.
func (m *transactions) transfer(cl, proxy *command.Client) (bytes int) {
	k := m.of(cl)
	if k == nil || k.tx == nil {
		return 0
	}
	bytes = k.watching + k.tx.bytes
	*m.make(proxy), *k = *k, clientTransaction{}
	return bytes
}

// queueWrites is the Writes function of EXEC: it reports whether one of the queued commands may
// change something.
func queueWrites(c *command.Call, exec *command.Command, _ [][]byte) bool {
	k := keptOf(exec.Slot(), c.Client)
	return k != nil && k.tx != nil && slices.ContainsFunc(k.tx.queue, func(q queued) bool { return c.MayChange(q.cmd, q.args) })
}

// exec is the Run function of EXEC. It runs the queued commands at one instant, with the shards of
// their keys locked. A transaction that may take long runs as an exclusive command, and one with
// much work in the background.
func exec(c *command.Call) {
	if c.Client.Marks&command.MarkQueuing == 0 {
		c.Fail(errExecAlone)
		return
	}
	m := transactionsOf(c)
	k := m.of(c.Client)
	if k.tx.failed {
		m.discard(c.Client, c.Store)
		c.Fail(errExecAbort)
		return
	}
	c.Client.Mark(command.MarkQueuing, false)
	long := runsLong(c, k.tx)
	if !long && !c.ExceedsLoop(transactionWork(c, k)) {
		m.run(c, k)
		return
	}
	cmd, host := c.Cmd, &c.Server.Host
	run := func(c *command.Call) {
		c.Cmd = cmd
		m.run(c, m.of(c.Client))
	}
	if long {
		host.Exclusives.Enqueue(host.Exclusives.ParkExclusive(c, run))
		return
	}
	c.MoveToBackground(func(c *command.Call) { host.Work.Timed(c, run) })
}

// run locks the keys of the transaction in k, checks whether it may run, runs the queue, and ends
// the transaction. If it may not run, the reply is an error, or null if a watched key has changed.
func (m *transactions) run(c *command.Call, k *clientTransaction) {
	t, st := k.tx, storeOf(c)
	if collect(c, t) {
		c.Lock(t.refs, k.watched)
	} else {
		c.LockAll()
	}
	lacks, byItself := lacksMemory(c, st, t)
	if lacks {
		c.ReleaseLocks()
		c.Server.Host.Calls.Reject(c, resp.ErrOOM)
		return
	}
	if err := halted(c, t); err != "" {
		c.ReleaseLocks()
		c.Server.Host.Calls.Reject(c, err)
		return
	}
	if c.Journal != nil && lacksJournal(c, t) {
		c.ReleaseLocks()
		c.Server.Host.Calls.Reject(c, c.Refusal())
		return
	}
	if k.watched != nil && st.Changed(k.watched) {
		c.ReleaseLocks()
		m.discard(c.Client, c.Store)
		c.W.NullArray()
		return
	}
	if !byItself {
		c.Begin()
	}
	c.RunLocked(func() { runQueue(c, st, t) })
	c.Server.BatchEnd(c.Worker) // BatchEnd makes the worker drop its references to keys of the queue
	m.discard(c.Client, c.Store)
}

// lacksMemory reports whether memory is full and a command of t needs memory, so that the whole
// transaction is refused. The keys of t are locked. A limiter needs memory if its key does not
// exist. A script needs memory if it may write, unless its flags say allow-oom. byItself is true if
// a script needs memory but is the only command of t that may change something: the transaction
// then runs, and the script is refused at its first write, as outside of a transaction.
func lacksMemory(c *command.Call, st store, t *transaction) (lacks, byItself bool) {
	if !c.Full() {
		return false, false
	}
	db, changes, scripts := c.Client.Selected(), 0, 0
	lacks = slices.ContainsFunc(t.queue, func(q queued) bool {
		if c.MayChange(q.cmd, q.args) {
			changes++
		}
		switch {
		case q.cmd.Flags&command.FlagSelects != 0:
			db = selects(c.Server, &q, db)
		case q.cmd.NeedsMemory():
			return true
		case q.cmd.Plan != nil:
			if p := q.cmd.Plan(c, q.cmd, q.args); p.Writes && !p.AllowOOM {
				scripts++
			}
		case q.cmd.Flags&(command.FlagDenyOOM|command.FlagModule) != 0: // a limiter; CL.THROTTLE has the flags of a module command
			return slices.ContainsFunc(q.cmd.Keys.Names(q.args), func(key []byte) bool { return !st.Exists(db, key) })
		}
		return false
	})
	return lacks || scripts > 0 && changes > 1, scripts > 0
}

// errRulesChanged is the error for a queued command that is no longer allowed. The reason follows
// it.
const errRulesChanged resp.Error = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: "

var whyRulesChanged = map[acl.Denied]string{
	acl.DeniedCommand: "no permission to execute the command or subcommand",
	acl.DeniedKey:     "no permission to touch the specified keys",
	acl.DeniedChannel: "no permission to access one of the channels used as arguments to the command",
}

// runQueue runs the queued commands of t and replies with an array of their replies. If the reply
// gets too long, the remaining commands run nonetheless, and the client is closed, because it
// cannot learn their outcome.
func runQueue(c *command.Call, st store, t *transaction) {
	cmd, args := c.Cmd, c.Args
	mark, tooLong := len(c.W.Buf), false
	c.W.Array(len(t.queue))
	for i, q := range t.queue {
		if i%command.MaxRequests == 0 {
			prefetchQueue(c, st, t.queue[i:min(i+command.MaxRequests, len(t.queue))])
		}
		c.Cmd, c.Args, c.Failed = q.cmd, q.args, false
		if c.Client.ProxyOf != nil && q.cmd.Subscribes() {
			c.Fail(errSubscribeAlone)
		} else if is, forbidden := c.Forbidden(acl.InTransaction, cmd); forbidden {
			c.Fail(errRulesChanged + resp.Error(whyRulesChanged[is.Reason]))
		} else {
			c.Server.Host.Calls.Run(c)
		}
		if tooLong = tooLong || c.W.Size(mark) > command.MaxReply; tooLong {
			c.W.Cut(mark)
		} else if c.W.Pieces != nil {
			c.W.Spill(mark)
		}
	}
	c.Client.Closing = c.Client.Closing || tooLong
	c.Cmd, c.Args, c.Failed = cmd, args, false
}

// prefetchQueue makes st prefetch the first keys of the commands in queue. It does nothing if st is
// nil or there are fewer than two such keys.
func prefetchQueue(c *command.Call, st store, queue []queued) {
	if st == nil {
		return
	}
	c.Keys = c.Keys[:0]
	for i := range queue {
		if q := &queue[i]; q.cmd.Keys.First == 1 && len(q.args) > 1 {
			c.Keys = append(c.Keys, q.args[1])
		}
	}
	if len(c.Keys) > 1 {
		st.Prefetch(c.Client.Selected(), c.Keys)
	}
}

// collect sets t.refs to the keys of the queued commands with their databases, following SELECT. It
// returns false if a command may access keys that are not among its arguments, so that all keys
// have to be locked.
func collect(c *command.Call, t *transaction) bool {
	t.refs = t.refs[:0]
	db := c.Client.Selected()
	for _, q := range t.queue {
		if q.cmd.SpansKeyspace() {
			return false
		}
		if q.cmd.Plan != nil && !q.cmd.Plan(c, q.cmd, q.args).KeysOnly {
			return false
		}
		if q.cmd.Flags&command.FlagSelects != 0 {
			db = selects(c.Server, &q, db)
			continue
		}
		for i, end, step := q.cmd.Keys.Range(q.args); i < end; i += step {
			t.refs = append(t.refs, env.KeyRef{DB: db, Key: q.args[i]})
		}
	}
	return true
}
