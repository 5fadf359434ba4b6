package direct

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// Conn is a client within this process, with a session of its own. Any goroutine may call its methods.
// It is the [transport.Peer] of its session.
//
// Calls of Do that come while another one runs are fed to the session together, as the commands of a
// pipeline are. So they share one write of the log.
type Conn struct {
	t       *Transport
	session Session
	o       Origin

	wake    chan struct{} // has an element if Wake was called and Feed was not called since then
	aborted atomic.Bool
	input   atomic.Int64 // number of bytes of commands that the session has not consumed
	output  atomic.Int64 // number of bytes of replies that no call has got yet
	moved   traffic

	mu    sync.Mutex
	queue []*call // calls that wait until another one has finished
	busy  bool    // whether a call uses the session and the fields below
	ended error   // the error of further calls; nil while c is open
	user  bool    // whether the client has logged in

	batch    []*call
	in, out  []byte
	received []byte // the beginning of a reply whose rest has not arrived
}

// traffic counts the bytes that were fed to a session, and those that it has returned.
type traffic struct{ in, out, feeds atomic.Int64 }

// call is one [Conn.Do].
type call struct {
	commands []byte
	replies  int // the number of replies that have not arrived
	out      []byte
	err      error
	// turn receives true if the call has to run the batch of its connection, of which it is a part, and false when the
	// call is finished.
	turn chan bool
}

// Do runs commands, RESP arrays one after another, as if a client had sent them, and appends their
// replies to out in the form of RESP2. replies is the number of commands, of which each has to have one reply. Do returns when all
// replies may be sent: their effects are in the log and at the replicas, as the server is configured.
//
// The errors are [ErrUser], [ErrClosed] and [ErrReplies]. Then commands may have run, and out is returned without their
// replies. An error reply is no error of Do.
func (c *Conn) Do(commands []byte, replies int, out []byte) ([]byte, error) {
	k := c.t.calls.Get().(*call)
	k.commands, k.replies, k.out, k.err = commands, replies, out, nil
	before := len(out)
	c.mu.Lock()
	switch {
	case c.ended != nil:
		k.err = c.ended
		c.mu.Unlock()
	case !c.user:
		k.err = ErrUser
		c.mu.Unlock()
	case c.busy:
		c.queue = append(c.queue, k)
		c.mu.Unlock()
		if <-k.turn {
			c.run()
		}
	default:
		c.busy = true
		c.batch = append(c.batch, k)
		c.mu.Unlock()
		c.run()
	}
	out, err := k.out, k.err
	if err != nil {
		out = out[:before]
	}
	k.commands, k.out = nil, nil
	c.t.calls.Put(k)
	return out, err
}

// Login logs the client in as the user called user. It is called before the first call of Do, by one goroutine at a time, and
// may be called again after an error. The error is [ErrClosed], or that of [Session].Enter.
func (c *Conn) Login(user string) error {
	c.mu.Lock()
	if c.ended != nil {
		defer c.mu.Unlock()
		return c.ended
	}
	c.busy = true // busy keeps the session from ending meanwhile
	c.mu.Unlock()
	err := c.session.Enter(user)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = err == nil
	c.next()
	return err //nolint:wrapcheck // it is for the client
}

// run finishes the calls of the batch. Then it leaves the connection to the calls that have come meanwhile. The call that
// runs it is the first of the batch.
func (c *Conn) run() {
	err := c.feed()
	for i, k := range c.batch {
		if k.replies > 0 {
			k.err = err
		}
		if i > 0 {
			k.turn <- false
		}
	}
	clear(c.batch)
	c.batch = c.batch[:0]
	c.shrink()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.ended == nil {
		c.ended = err
	}
	c.next()
}

// next ends the turn of a call: the first waiting call gets the turn, or the connection ends if it is being closed.
// c.mu is held.
func (c *Conn) next() {
	if c.ended == nil && len(c.queue) > 0 {
		c.batch, c.queue = c.queue, c.batch
		c.batch[0].turn <- true
		return
	}
	c.busy = false
	if c.ended != nil {
		c.finish()
	}
}

// finish ends the session, once, and refuses the calls that wait. c.mu is held, and no call uses the session.
func (c *Conn) finish() {
	for _, k := range c.queue {
		k.err = c.ended
		k.turn <- false
	}
	c.queue = nil
	if c.session != nil {
		c.session.Closed()
		c.session = nil
		c.t.remove(c)
	}
}

// feed feeds the commands of the batch to the session until all replies have come. Calls that do not get all their
// replies return the error.
func (c *Conn) feed() error {
	in := c.batch[0].commands
	if len(c.batch) > 1 {
		in = c.in[:0]
		for _, k := range c.batch {
			in = append(in, k.commands...)
		}
		c.in = in
	}
	c.moved.in.Add(int64(len(in)))
	for done := 0; ; {
		if c.aborted.Load() {
			return ErrClosed
		}
		select {
		case <-c.wake:
		default:
		}
		worker := c.t.workers.Borrow(c.t.handler)
		turn := c.session.Feed(worker, in, c.out[:0])
		c.t.workers.GiveBack(worker)
		c.moved.feeds.Add(1)
		in = in[turn.Consumed:]
		c.input.Store(int64(len(in)))
		if turn.Barrier != 0 && !c.hold(&turn) {
			return ErrClosed
		}
		c.out = turn.Out
		replies := turn.Whole()
		c.moved.out.Add(int64(len(replies)))
		var err error
		switch done, err = c.deliver(done, replies); {
		case err != nil:
			return err
		case done == len(c.batch) && len(in) > 0:
			return ErrReplies // the next call would get the remaining replies
		case done == len(c.batch):
			return nil
		}
		switch turn.Next {
		case transport.Close:
			return ErrClosed
		case transport.Again:
			runtime.Gosched()
		case transport.Read:
			if len(in) == 0 || turn.Consumed == 0 {
				return ErrReplies
			}
		case transport.Park, transport.Wait:
			<-c.wake
		}
	}
}

// hold waits until the log has reached the barrier of turn, and sets the replies that may be sent then. It returns
// false if the connection was aborted before.
func (c *Conn) hold(turn *transport.Turn) bool {
	c.output.Store(int64(len(turn.Out)))
	defer c.output.Store(0)
	for {
		is := c.t.handler.Durable(turn.Barrier, c)
		if is != transport.Pending {
			turn.Out, turn.Refs = base.Settle(c.session, is, turn.Out, turn.Refs)
			c.Wake() // Wake may have been called for the session in the meantime
			return true
		}
		if <-c.wake; c.aborted.Load() {
			release(turn.Refs)
			return false
		}
	}
}

func release(refs []shared.Ref) {
	for i := range refs {
		refs[i].Release()
	}
}

// deliver gives replies to the calls of the batch, from the one with the index done on. It returns how many calls have all
// their replies. The error is [ErrReplies].
func (c *Conn) deliver(done int, replies []byte) (int, error) {
	if len(c.received) > 0 {
		c.received = append(c.received, replies...)
		replies = c.received
	}
	for len(replies) > 0 {
		n := replySize(replies)
		if n < 0 || n > 0 && done == len(c.batch) {
			return done, ErrReplies
		}
		if n == 0 {
			break
		}
		k := c.batch[done]
		k.out = append(k.out, replies[:n]...)
		replies = replies[n:]
		if k.replies--; k.replies == 0 {
			done++
		}
	}
	c.received = append(c.received[:0], replies...)
	return done, nil
}

// maxKept is the maximum size of a buffer that a connection keeps between two batches.
const maxKept = 64 << 10

func (c *Conn) shrink() {
	for _, b := range []*[]byte{&c.in, &c.out, &c.received} {
		if cap(*b) > maxKept {
			*b = nil
		}
	}
	c.input.Store(0)
}

// Close ends the session. The running call gets its replies if they are available at once; all other calls get
// [ErrClosed].
func (c *Conn) Close() {
	c.aborted.Store(true)
	c.Wake()
	c.retire()
}

// retire refuses further calls, and ends the session as soon as no call runs.
func (c *Conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = ErrClosed
	}
	if !c.busy {
		c.finish()
	}
}

// Touch notes that the client is active now, as a call of Do does.
func (c *Conn) Touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		c.session.Touch()
	}
}

// Wake implements [transport.Peer].
func (c *Conn) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Abort implements [transport.Peer]: it closes c, and calls [Origin].Gone.
func (c *Conn) Abort() {
	if !c.aborted.Swap(true) {
		c.Wake()
		go c.abort() // the caller may hold locks that the session needs when it ends
	}
}

func (c *Conn) abort() {
	c.retire()
	if c.o.Gone != nil {
		c.o.Gone()
	}
}

// RemoteAddr implements [transport.Peer].
func (c *Conn) RemoteAddr() net.Addr { return c.o.Remote }

// LocalAddr implements [transport.Peer].
func (c *Conn) LocalAddr() net.Addr { return c.o.Local }

// Held implements [transport.Peer].
func (c *Conn) Held() (input, output int64) {
	output = c.output.Load()
	if c.o.Kept != nil {
		output += c.o.Kept()
	}
	return c.input.Load(), output
}
