package commands

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// popWait is a client that waits for elements. Whoever puts some under one of its keys
// serves it, with that key held, before anybody else can take them: see
// [Ctx.exclusively]. There is no polling.
type popWait struct {
	parked *Parked
	call   popCall
	db     int
	keys   [][]byte

	mu     sync.Mutex
	ticket any  // guarded by mu: its places in the queues, nil before it has any
	ended  bool // guarded by mu: it is to get none any more

	// stop ends the timer of the timeout; nil without one, and for a moment while that
	// may fire already.
	stop atomic.Pointer[func() bool]
}

// servedPop is a waiter that has been served, and its reply.
type servedPop struct {
	w     *popWait
	reply resp.Reply
}

const errWaitMany resp.Error = "ERR too many keys to wait for"

// popOrWait takes from the first of keys that has something, or parks the session until
// one has. In a transaction or script it replies null instead.
func (c *Ctx) popOrWait(call popCall, keys [][]byte, timeout []byte) {
	d, err := parsePopTimeout(timeout)
	if err != "" {
		c.Fail(err)
		return
	}
	waits := c.mayWait()
	if c.leaves(c.popWork(&call, keys)) && waits {
		c.waitBeside(call, keys, d)
		return
	}
	c.withKeys(keys, call.to, func() {
		switch {
		case c.popNow(&call, keys):
		case waits:
			c.awaitPop(call, keys, d)
		case call.to != nil:
			c.W.Null()
		default:
			c.W.NullArray()
		}
	})
}

// withKeys runs f with keys held, and to unless it is nil, and serves those whom f leaves
// something.
func (c *Ctx) withKeys(keys [][]byte, to []byte, f func()) {
	if c.Client.exclusive {
		f()
		return
	}
	db := c.Client.selected()
	c.refs = c.refs[:0]
	for _, key := range keys {
		c.refs = append(c.refs, KeyRef{DB: db, Key: key})
	}
	if to != nil {
		c.refs = append(c.refs, KeyRef{DB: db, Key: to})
	}
	c.hold(c.refs, nil)
	c.exclusively(f)
}

// hold is [Locker.Hold], and of what those need who wait under these keys.
func (c *Ctx) hold(refs []KeyRef, watched any) {
	if c.server.halts.Load()&haltServing != 0 {
		refs = c.Store.AppendMoves(refs)
	}
	c.Store.Hold(refs, watched)
	c.Store.Serving()
}

// holdAll is hold for all keys.
func (c *Ctx) holdAll() {
	c.Store.HoldAll()
	c.Store.Serving()
}

// runFeeding runs a command that may put elements under a key that somebody waits for.
func (c *Ctx) runFeeding() {
	db := c.Client.selected()
	c.refs = c.refs[:0]
	for _, i := range c.Cmd.Keys.positions(c.Args) {
		c.refs = append(c.refs, KeyRef{DB: db, Key: c.Args[i]})
	}
	c.hold(c.refs, nil)
	c.exclusively(func() { laneOf(c.Worker).run(c) })
}

// awaitPop joins the queues of keys, which are held, and parks.
func (c *Ctx) awaitPop(call popCall, keys [][]byte, timeout time.Duration) {
	if w := c.newPopWait(call, keys); w != nil {
		w.join(c.Store)
		c.parkPop(w, timeout)
	}
}

// newPopWait makes a waiter of the running command; nil if it has been refused.
func (c *Ctx) newPopWait(call popCall, keys [][]byte) *popWait {
	cost := 0
	for _, key := range keys {
		cost += len(key) + watchCost
	}
	if cost > maxQueuedBytes {
		c.Fail(errWaitMany)
		return nil
	}
	w := &popWait{parked: c.parking(), call: call, db: c.Client.selected(), keys: cloneArgs(keys)}
	w.call.to = bytes.Clone(call.to)
	w.parked.kept = cost
	w.parked.cancel = w.leave
	w.parked.giveUp = w.giveUp
	engineOf(c.server).notePopper(1)
	return w
}

// parkPop parks the running command as w, with its timeout unless that is 0.
func (c *Ctx) parkPop(w *popWait, timeout time.Duration) {
	if timeout > 0 {
		stop := c.Store.AfterFunc(timeout, func() { w.parked.interrupt(false) })
		w.stop.Store(&stop)
	}
	c.Park(w.parked)
}

// join puts w into the queues of its keys, which are held, unless its wait is over.
func (w *popWait) join(st Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ticket = st.EnqueuePop(w.db, w.keys, PopWait{
			SortedSet: w.call.sorted, Dest: w.call.to, Owner: w, Ready: sessionOf(w.parked.client).engine.serveBeside,
		})
	}
}

// notePopper counts those who wait; while there are any, commands look whether they feed
// somebody.
func (e *Engine) notePopper(n int) {
	e.poppers.mu.Lock()
	defer e.poppers.mu.Unlock()
	e.poppers.count += n
	if e.poppers.count > 0 {
		e.halts.Or(haltServing)
	} else {
		e.halts.And(^haltServing)
	}
}

// end takes a waiter whose answer is claimed out of everything. Nothing is held.
func (w *popWait) end(st Store) {
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
	sessionOf(w.parked.client).engine.notePopper(-1)
}

// giveUp ends the wait with nothing, as in Redis with a null array whatever the command
// would have replied.
func (w *popWait) giveUp(st Store, out *resp.Writer) {
	w.end(st)
	w.parked.looked = true
	out.NullArray()
}

// leave ends the wait of a client that is gone. The answer is claimed at once, so that
// nobody gives it an element which then is nobody's; the queues are left beside the caller.
func (w *popWait) leave() {
	if w.parked.claim() {
		w.parked.work(w.end)
	}
}

// serve gives those who wait what is held now, in the order in which it came and they
// did. It is called before the release, and answerServed behind it.
func (c *Ctx) serve() {
	if c.server.halts.Load()&haltServing != 0 { // else a script would pay for a func value
		c.Store.Serve(func(owner any, db int, key []byte) Served { return c.serveOne(owner, db, key) })
	}
}

// serveOne serves a waiter for whom there is something under fed; nil where that is its
// first look at its keys, which may find one of another type.
func (c *Ctx) serveOne(owner any, db int, fed []byte) Served {
	w := owner.(*popWait)
	switch {
	case w.parked.state.Load() != parkedWaiting:
		return ServedGone
	case w.call.to != nil && !c.Store.Holds(w.call.to):
		return ServedLater
	case !w.parked.claim():
		return ServedGone
	}
	out := resp.Writer{Proto: w.parked.proto, Ledger: c.server.opts.Ledger, OnError: w.parked.noteError}
	laneOf(c.Worker).observer.served = w.parked.client.id
	defer func() {
		laneOf(c.Worker).observer.served = 0
		if r := recover(); r != nil {
			engineOf(c.server).Recovered(r)
			out.Cut(0)
			w.parked.broken = true
			out.Error(resp.ErrInternal)
		}
		laneOf(c.Worker).served = append(laneOf(c.Worker).served, servedPop{w, out.Take()})
	}()
	for _, key := range w.keys {
		if !c.Store.Holds(key) { // it has not changed, and so has nothing
			continue
		}
		found, err := w.call.take(c.Store, db, key, &out)
		if fed != nil && w.call.to == nil && errors.Is(err, limit.ErrWrongType) {
			continue // to those who wait it is as if there was nothing
		}
		if err != nil {
			out.Error(c.waiterError(err))
		}
		if err != nil || found {
			break
		}
	}
	return ServedYes
}

// waiterError is what somebody else's command is answered.
func (c *Ctx) waiterError(err error) resp.Error {
	switch {
	case errors.Is(err, limit.ErrNotKept):
		return misconf(c.server.opts.Persistence.Fault())
	case errors.Is(err, errLongReply):
		return errValuesTooLong // whoever has it served may be a script
	}
	return c.elementsError(err)
}

// answerServed answers those who have been served, once nothing is held and what they
// took has been recorded.
func (c *Ctx) answerServed() {
	for len(laneOf(c.Worker).served) > 0 {
		served := laneOf(c.Worker).served
		laneOf(c.Worker).served = nil
		for _, s := range served {
			s.w.end(c.Store)
			s.w.parked.answer(func(out *resp.Writer) { out.Reply(s.reply) })
		}
	}
}
