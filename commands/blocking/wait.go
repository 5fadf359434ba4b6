package blocking

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// popWait is a client that waits for elements. The command that adds elements to one of its keys
// serves it, with that key locked, before another command can take them: see
// [command.Call.RunLocked]. There is no polling.
type popWait struct {
	all    *waiters
	parked *command.Wait
	call   Call
	db     int
	keys   [][]byte

	mu     sync.Mutex
	ticket any  // guarded by mu: its places in the queues; nil before it has joined them
	ended  bool // guarded by mu: it may not join the queues any more

	// stop stops the timer of the timeout. It is nil without a timeout, and until parkPop has
	// stored it, when the timer may fire already.
	stop atomic.Pointer[func() bool]
}

// Part serves the clients that wait for elements. Groups with commands that wait need it.
var Part = &command.Group{
	Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
		q := &waiters{server: s, slot: slot}
		return q, command.Hooks{Serve: q.serve, Unlocked: q.unlocked}
	},
	Worker: func(*command.Worker, command.Slot) any { return new(servedPops) },
}

// waiters is the state of the group for a server.
type waiters struct {
	server *command.Server
	slot   command.Slot
	mu     sync.Mutex
	count  int // guarded by mu: the number of clients that wait for elements
}

// servedPops are the waiters that a worker has served and that have not been answered yet.
type servedPops struct{ list []servedPop }

// servedPop is a waiter that has been served, with its reply.
type servedPop struct {
	w     *popWait
	reply resp.Reply
}

const errWaitMany resp.Error = "ERR too many keys to wait for"

// withKeys runs f with keys locked, and to as well unless it is nil. It then serves the clients
// for which f has added elements.
func withKeys(c *command.Call, keys [][]byte, to []byte, f func()) {
	if c.Client.Exclusive {
		f()
		return
	}
	db := c.Client.Selected()
	c.Refs = c.Refs[:0]
	for _, key := range keys {
		c.Refs = append(c.Refs, env.KeyRef{DB: db, Key: key})
	}
	if to != nil {
		c.Refs = append(c.Refs, env.KeyRef{DB: db, Key: to})
	}
	c.Lock(c.Refs, nil)
	c.RunLocked(f)
}

// awaitPop joins the queues of keys, which are locked, and parks the session.
func awaitPop(c *command.Call, call Call, keys [][]byte, timeout time.Duration) {
	if w := newPopWait(c, call, keys); w != nil {
		w.join(c.Store)
		parkPop(c, w, timeout)
	}
}

// newPopWait returns a waiter for the running command, or nil after it has replied with an error.
func newPopWait(c *command.Call, call Call, keys [][]byte) *popWait {
	cost := 0
	for _, key := range keys {
		cost += len(key) + command.WatchCost
	}
	if cost > command.MaxQueuedBytes {
		c.Fail(errWaitMany)
		return nil
	}
	parked := c.NewWait(cost)
	parked.Args = c.Args
	if !parked.Reserve() {
		c.Fail(resp.ErrOOM)
		return nil
	}
	own := command.CloneArgs(c.Args)
	at := c.Cmd.Keys.Positions(own) // the keys, which are adjacent, and then the destination
	w := &popWait{all: command.Find[waiters](c.Server), parked: parked, call: call, db: c.Client.Selected(), keys: own[at[0] : at[0]+len(keys)]}
	if call.To != nil {
		w.call.To = own[at[len(keys)]]
	}
	w.parked.Args = own
	w.parked.Cancel = w.leave
	w.parked.OnTimeout, w.parked.Unanswered = w.giveUp, true
	w.all.note(1)
	return w
}

// overdue is how long after its timeout a pop ends. Redis uses a clock of whole milliseconds, and
// ends a pop when more than the timeout has passed. Clients that measure the wait with the same
// resolution take a wait of exactly the timeout for a success: the Python library self-limiters
// would then let callers in.
const overdue = time.Millisecond

// parkPop parks the running command as w, with its timeout unless that is 0.
func parkPop(c *command.Call, w *popWait, timeout time.Duration) {
	if timeout > 0 {
		stop := c.Store.AfterFunc(min(timeout, math.MaxInt64-overdue)+overdue, func() { w.parked.Interrupt(false) })
		w.stop.Store(&stop)
	}
	c.Park(w.parked)
}

// join puts w into the queues of its keys, which are locked, unless its wait is over.
func (w *popWait) join(st env.Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ticket = st.EnqueuePop(w.db, w.keys, env.PopWait{
			SortedSet: w.call.Kind.SortedSet, Dest: w.call.To, Owner: w, Ready: w.all.serveKey,
		})
	}
}

// note adds n to the number of waiting clients. While it is positive, HaltServing makes commands
// check whether they have added elements for one of them.
func (q *waiters) note(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count += n
	if q.count > 0 {
		q.server.Halts.Or(command.HaltServing)
	} else {
		q.server.Halts.And(^command.HaltServing)
	}
}

// end stops the timer and removes a waiter from the queues and the count. Its answer has been
// claimed, and the caller holds no lock.
func (w *popWait) end(st env.Store) {
	if stop := w.stop.Load(); stop != nil {
		(*stop)()
	}
	w.mu.Lock()
	ticket := w.ticket
	w.ended = true
	w.mu.Unlock()
	if ticket != nil {
		st.DequeuePop(ticket)
	}
	w.all.note(-1)
}

// giveUp ends the wait without an element. As in Redis the reply is a null array, whatever the
// type of the command's usual reply.
func (w *popWait) giveUp(st env.Store, out *resp.Writer) {
	w.end(st)
	w.parked.NoEffect = true
	out.NullArray()
}

// leave ends the wait of a disconnected client. It claims the answer at once, so that no element
// is given to the client and lost. The queues are left in the background.
func (w *popWait) leave() {
	if w.parked.Claim() {
		w.parked.Work(w.end)
	}
}

// serve implements [command.Hooks].
func (q *waiters) serve(c *command.Call) {
	c.Store.Serve(func(owner any, db int, _ []byte) env.Served { return q.serveOne(c, owner, db) })
}

// serveOne serves a waiter that has a locked key with elements. As in Redis it looks at the
// waiter's keys in their order: a key of another type is an error if no key before it has
// elements.
func (q *waiters) serveOne(c *command.Call, owner any, db int) env.Served {
	w := owner.(*popWait)
	switch {
	case w.parked.State.Load() != command.WaitPending, w.parked.Client.Killed.Load(): // its reply would be lost
		return env.ServedGone
	case w.call.To != nil && !c.Store.IsLocked(w.call.To):
		return env.ServedLater
	case !w.parked.Claim():
		return env.ServedGone
	}
	out := resp.Writer{Proto: w.parked.Proto, Ledger: c.Server.Options.Ledger, OnError: w.parked.NoteError}
	served := q.slot.OfWorker(c.Worker).(*servedPops)
	c.Served = w.parked.Client.ID
	defer func() {
		c.Served = 0
		if r := recover(); r != nil {
			c.Server.Host.Recovered(r)
			out.Cut(0)
			w.parked.Broken = true
			out.Error(resp.ErrInternal)
		}
		served.list, c.Serves = append(served.list, servedPop{w, out.Take()}), true
	}()
	if err := w.parked.Forbidden(c.Store); err != "" {
		out.Error(err)
		return env.ServedYes
	}
	for _, key := range w.keys {
		if !c.Store.IsLocked(key) { // an unlocked key is empty: keys with elements or of another type are locked
			continue
		}
		found, err := w.call.Kind.Take(&w.call, c.Store, db, key, &out)
		if err != nil {
			out.Error(waiterError(c, err))
		}
		if err != nil || found {
			break
		}
	}
	return env.ServedYes
}

// waiterError returns the reply to a waiter if serving it failed.
func waiterError(c *command.Call, err error) resp.Error {
	switch {
	case errors.Is(err, limit.ErrNotKept):
		return command.Misconf(c.Server.Options.Persistence.Fault())
	case errors.Is(err, command.ErrLongReply):
		return command.ErrValuesTooLong // the serving command may be one of a script, whose own error would mislead
	}
	return elements.ElementsError(c, err)
}

// unlocked implements [command.Hooks]: it answers the waiters that have been served, after all
// locks are released and their pops have been recorded. If abandoned, their replies are dropped,
// because their connections are being closed.
func (q *waiters) unlocked(c *command.Call, abandoned bool) {
	kept := q.slot.OfWorker(c.Worker).(*servedPops)
	for len(kept.list) > 0 {
		served := kept.list
		kept.list = nil
		for _, s := range served {
			if abandoned {
				s.reply.Release()
				continue
			}
			s.w.end(c.Store)
			s.w.parked.Answer(func(out *resp.Writer) { out.Reply(s.reply) })
		}
	}
}

// serveKey serves a key that has changed in a place where no command could serve it.
func (q *waiters) serveKey(db int, key string) {
	ref := []env.KeyRef{{DB: db, Key: []byte(key)}}
	q.serveKeys(ref, func(c *command.Call) { c.Store.MarkReady(db, ref[0].Key) })
}

// serveKeys runs f on a goroutine with refs locked, and serves the waiters that f has made ready.
func (q *waiters) serveKeys(refs []env.KeyRef, f func(c *command.Call)) {
	host := q.server.Host
	host.SpawnCall(len(refs) > 1, func(c *command.Call) {
		again := func(resumed bool) {
			if resumed {
				q.serveKeys(refs, f)
			}
		}
		if host.AfterPause(again) {
			return
		}
		c.Lock(refs, nil)
		f(c)
		c.ServeLocked()
		c.Unlock()
	})
}
