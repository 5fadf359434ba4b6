package blocking

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// popWait is a client that waits for elements. The command that adds elements to one of its keys
// serves the client while that key is still locked, so that no other command takes the elements:
// see [command.Call.RunLocked]. The client does not poll.
type popWait struct {
	all    *waiters
	parked *command.Wait
	call   Call
	db     int
	keys   [][]byte

	mu     sync.Mutex
	ticket any  // the places of the client in the queues; nil before it has joined them; guarded by mu
	ended  bool // whether the client may no longer join the queues; guarded by mu

	// stop stops the timer of the timeout. It is nil if there is no timeout, and until parkPop has
	// stored it; the timer may fire before that.
	stop atomic.Pointer[func() bool]
}

// Part is the part of the command table that serves the clients which wait for elements. Every
// group with commands that wait for elements needs it: see [command.Group].Needs.
var Part = &command.Group{
	Server: func(s *command.Server, slot command.Slot) (any, command.Hooks) {
		q := &waiters{server: s, slot: slot}
		return q, command.Hooks{Serve: q.serve, Unlocked: q.unlocked}
	},
	Worker: func(*command.Worker, command.Slot) any { return new(servedPops) },
}

// waiters serves the clients of a server that wait for elements.
type waiters struct {
	server *command.Server
	slot   command.Slot
	mu     sync.Mutex
	count  int // the number of clients that wait for elements; guarded by mu
}

// servedPops has the clients that a worker has served and that have not got their replies yet.
type servedPops struct{ list []servedPop }

// servedPop is a client that was served, with its reply.
type servedPop struct {
	w     *popWait
	reply resp.Reply
}

const errWaitMany resp.Error = "ERR too many keys to wait for"

// withKeys runs f with keys locked, and with to locked as well unless it is nil. Then it serves the
// clients that wait for elements which f has added. In an exclusive command the keys are locked
// already, so it only runs f.
func withKeys(c StoreCall, keys [][]byte, to []byte, f func()) {
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

// awaitPop adds the client of c to the queues of keys, which are locked, and parks the session. If
// the client may not wait for so many keys, or there is no memory, it replies with an error.
func awaitPop(c StoreCall, call Call, keys [][]byte, timeout time.Duration) {
	if w := newPopWait(c, call, keys); w != nil {
		w.join(c.Store)
		parkPop(c, w, timeout)
	}
}

// newPopWait returns a waiting client for the running command, and counts it. If the keys take too
// much memory, or no memory is left, it replies with an error and returns nil.
func newPopWait(c StoreCall, call Call, keys [][]byte) *popWait {
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
	at := c.Cmd.Keys.Positions(own) // copied are the keys, which are adjacent, and the destination if there is one
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

// overdue is the time after its timeout at which a pop ends. Redis has a clock of whole
// milliseconds, and ends a pop when more than the timeout has passed. Clients that measure the wait
// with the same resolution take a wait of exactly the timeout for a success: the Python library
// self-limiters would then let callers in.
const overdue = time.Millisecond

// parkPop parks the session of the running command, which waits as w. A timeout of 0 means that the
// wait has no end.
func parkPop(c StoreCall, w *popWait, timeout time.Duration) {
	if timeout > 0 {
		stop := c.Store.AfterFunc(min(timeout, math.MaxInt64-overdue)+overdue, func() { w.parked.Interrupt(false) })
		w.stop.Store(&stop)
	}
	c.Park(w.parked)
}

// join adds w to the queues of its keys, which are locked, unless its wait has ended.
func (w *popWait) join(st Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ticket = st.EnqueuePop(w.db, w.keys, env.PopWait{
			SortedSet: w.call.Kind.SortedSet, Dest: w.call.To, Owner: w, Ready: w.all.serveKey,
		})
	}
}

// note adds n, which may be negative, to the number of waiting clients. While the number is above
// 0, HaltServing is set, so that commands check whether they have added elements for a waiting
// client.
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

// end stops the timer of w, removes w from the queues, and subtracts 1 from the number of waiting
// clients. The caller must have claimed the answer and must hold no locks.
func (w *popWait) end(st env.Store) {
	if stop := w.stop.Load(); stop != nil {
		(*stop)()
	}
	w.mu.Lock()
	ticket := w.ticket
	w.ended = true
	w.mu.Unlock()
	if ticket != nil {
		st.(Store).DequeuePop(ticket)
	}
	w.all.note(-1)
}

// giveUp ends the wait without an element. As in Redis the reply is a null array, whatever the type
// of the command's usual reply is.
func (w *popWait) giveUp(st env.Store, out *resp.Writer) {
	w.end(st)
	w.parked.NoEffect = true
	out.NullArray()
}

// leave ends the wait of a client that has disconnected. It claims the answer at once, because an
// element that is given to this client would be lost. It removes the client from the queues in the
// background. It does nothing if the answer was claimed before.
func (w *popWait) leave() {
	if w.parked.Claim() {
		w.parked.Work(w.end)
	}
}

// serve is the Serve hook: it gives elements of the locked keys to the clients that wait for them.
func (q *waiters) serve(c *command.Call) {
	on := onStore(c)
	on.Store.Serve(func(owner any, db int, _ []byte) env.Served { return q.serveOne(on, owner, db) })
}

// serveOne serves owner, a *popWait that waits for a locked key, and keeps the reply for unlocked
// to send. As in Redis it looks at the keys of the client in their order: a key of another
// type is an error if no key before it has elements. The result is ServedGone if the client no
// longer waits or was killed, and ServedLater if the destination of the client's move is not
// locked.
func (q *waiters) serveOne(c StoreCall, owner any, db int) env.Served {
	w := owner.(*popWait)
	switch {
	case w.parked.State.Load() != command.WaitPending, w.parked.Client.Killed.Load(): // a closed client cannot read the reply, and the element would be lost
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
			c.Server.Host.Calls.Recovered(r)
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
		if !c.Store.IsLocked(key) { // a key that is not locked is empty, because keys with elements or of another type are locked
			continue
		}
		found, err := w.call.Kind.Take(&w.call, c.Store, db, key, &out)
		if err != nil {
			out.Error(waiterError(c.Call, err))
		}
		if err != nil || found {
			break
		}
	}
	return env.ServedYes
}

// waiterError returns the reply to a waiting client that could not be served because of err.
func waiterError(c *command.Call, err error) resp.Error {
	switch {
	case errors.Is(err, limit.ErrNotKept):
		return command.Misconf(c.Server.Options.Persistence.Fault())
	case errors.Is(err, command.ErrLongReply):
		return command.ErrValuesTooLong // the serving command may be in a script, whose own error text would mislead the client
	}
	return elements.ElementsError(c, err)
}

// unlocked is the Unlocked hook: it sends the replies of the clients that c has served, after all
// locks were released and the pops were recorded. If abandoned is set, it drops the replies,
// because the connections of these clients are being closed.
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

// serveKey serves the clients that wait for elements of key. It is called when the key has changed
// and the command that changed it could not serve them.
func (q *waiters) serveKey(db int, key string) {
	ref := []env.KeyRef{{DB: db, Key: []byte(key)}}
	q.serveKeys(ref, func(c StoreCall) { c.Store.MarkReady(db, ref[0].Key) })
}

// serveKeys runs f on another goroutine with refs locked, and then serves the clients that wait for
// keys which have changed or which f has marked. During a pause it does so after the pause.
func (q *waiters) serveKeys(refs []env.KeyRef, f func(c StoreCall)) {
	host := &q.server.Host
	host.Work.SpawnCall(len(refs) > 1, func(c *command.Call) {
		again := func(resumed bool) {
			if resumed {
				q.serveKeys(refs, f)
			}
		}
		if host.Pauses.AfterPause(again) {
			return
		}
		c.Lock(refs, nil)
		f(onStore(c))
		c.ServeLocked()
		c.Unlock()
	})
}
