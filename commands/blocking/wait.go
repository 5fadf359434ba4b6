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

// popWait is a client that waits for elements. Whoever puts some under one of its keys
// serves it, with that key locked, before anybody else can take them: see
// [command.Call.RunLocked]. There is no polling.
type popWait struct {
	all    *waiters
	parked *command.Wait
	call   Call
	db     int
	keys   [][]byte

	mu     sync.Mutex
	ticket any  // guarded by mu: its places in the queues, nil before it has any
	ended  bool // guarded by mu: it is to get none any more

	// stop ends the timer of the timeout; nil without one, and for a moment while that
	// may fire already.
	stop atomic.Pointer[func() bool]
}

// Part serves those who wait for elements. Groups with commands that wait need it.
var Part = &command.Group{
	Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
		q := &waiters{server: s, slot: slot}
		return q, command.Hooks{Serve: q.serve, Unlocked: q.unlocked}
	},
	Worker: func(*command.Worker, command.Slot) any { return new(servedPops) },
}

// waiters is what the group keeps for the server.
type waiters struct {
	server *command.Server
	slot   command.Slot
	mu     sync.Mutex
	count  int // guarded by mu: those who wait for elements
}

// servedPops are those who have been served by a worker and are to be answered.
type servedPops struct{ list []servedPop }

// servedPop is a waiter that has been served, and its reply.
type servedPop struct {
	w     *popWait
	reply resp.Reply
}

const errWaitMany resp.Error = "ERR too many keys to wait for"

// withKeys runs f with keys locked, and to unless it is nil, and serves those whom f leaves
// something.
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

// awaitPop joins the queues of keys, which are locked, and parks.
func awaitPop(c *command.Call, call Call, keys [][]byte, timeout time.Duration) {
	if w := newPopWait(c, call, keys); w != nil {
		w.join(c.Store)
		parkPop(c, w, timeout)
	}
}

// newPopWait makes a waiter of the running command; nil if it has been refused.
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
	at := c.Cmd.Keys.Positions(own) // of the keys, which lie side by side, and of the destination
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

// overdue is how long after its timeout a pop ends. Redis reads a clock of whole milliseconds, and
// ends a pop when more of them than asked for have passed. Clients that measure a wait in the same
// way take one of exactly the timeout for an element: self-limiters lets callers in then.
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

// note counts those who wait; while there are any, commands look whether they feed somebody.
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

// end takes a waiter whose answer is claimed out of everything. Nothing is locked.
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

// giveUp ends the wait with nothing, as in Redis with a null array whatever the command
// would have replied.
func (w *popWait) giveUp(st env.Store, out *resp.Writer) {
	w.end(st)
	w.parked.NoEffect = true
	out.NullArray()
}

// leave ends the wait of a client that is gone. The answer is claimed at once, so that
// nobody gives it an element which then is nobody's; the queues are left beside the caller.
func (w *popWait) leave() {
	if w.parked.Claim() {
		w.parked.Work(w.end)
	}
}

// serve implements [command.Hooks].
func (q *waiters) serve(c *command.Call) {
	c.Store.Serve(func(owner any, db int, _ []byte) env.Served { return q.serveOne(c, owner, db) })
}

// serveOne serves a waiter for whom there is something under a key that is locked. As in Redis it looks
// at its keys in their order: one of another type is an error if nothing before it has elements.
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
		if !c.Store.IsLocked(key) { // it has nothing: what has, or is of another type, is locked
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

// waiterError is what somebody else's command is answered.
func waiterError(c *command.Call, err error) resp.Error {
	switch {
	case errors.Is(err, limit.ErrNotKept):
		return command.Misconf(c.Server.Options.Persistence.Fault())
	case errors.Is(err, command.ErrLongReply):
		return command.ErrValuesTooLong // whoever has it served may be a script
	}
	return elements.ElementsError(c, err)
}

// unlocked implements [command.Hooks]: it answers those who have been served, once nothing is
// locked and what they took has been recorded. If all that is abandoned their clients are
// being cut off.
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

// serveKey serves a key that has changed where nobody could.
func (q *waiters) serveKey(db int, key string) {
	ref := []env.KeyRef{{DB: db, Key: []byte(key)}}
	q.serveKeys(ref, func(c *command.Call) { c.Store.MarkReady(db, ref[0].Key) })
}

// serveKeys runs f with refs locked on a goroutine, and serves those whom it makes ready.
func (q *waiters) serveKeys(refs []env.KeyRef, f func(c *command.Call)) {
	host := q.server.Host
	host.SpawnCall(len(refs) > 1, func(c *command.Call) {
		again := func(goOn bool) {
			if goOn {
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
