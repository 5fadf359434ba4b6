package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// mostTries bounds how often a request is sent elsewhere, or again.
const mostTries = 8

// hooks are what a node asks of the engine that it is a part of.
type hooks struct {
	elapsed func() time.Duration
	// again has a request sent, by its slot or to the node at addr.
	again func(r *request)
	at    func(addr string, r *request)
	// moved says that a slot is at addr now. trouble says that some may be elsewhere.
	moved   func(slot int, addr string)
	trouble func()
	// after calls f later.
	after func(d time.Duration, f func())
	// changed tells that the node is asked no more, or again.
	changed func(addr string, open bool, why string)
}

// node is a master: what waits for it, and the workers that ask it.
type node struct {
	addr    string
	timeout time.Duration
	client  *redis.Client // of the workers
	control *redis.Client // of what no caller waits for, on the same connections
	hooks   hooks
	queue   *queue
	breaker *breaker
	stats   nodeStats
	listed  atomic.Bool // it has slots, as far as is known
	used    atomic.Int64
	sampled atomic.Int64 // when it first said what time it is; 0 before
	stop    chan struct{}
	done    sync.WaitGroup
}

// nodeStats are what a node has been asked.
type nodeStats struct {
	gets, swaps, pipelines, failures, redirected atomic.Int64
	rtt                                          atomic.Int64 // of the latest probe
}

func newNode(addr string, client *redis.Client, timeout time.Duration, h hooks) *node {
	n := &node{
		addr: addr, timeout: timeout, client: client, control: client.WithTimeout(controlTimeout),
		hooks: h, queue: newQueue(mostWaiting), stop: make(chan struct{}),
	}
	n.breaker = newBreaker(func(open bool, why string) { h.changed(addr, open, why) })
	for range workers {
		n.done.Go(n.work)
	}
	return n
}

// close ends the workers and cuts off what they wait for. What waits in the queue is
// answered.
func (n *node) close() {
	close(n.stop)
	n.queue.close()
	_ = n.client.Close()
	n.done.Wait()
}

// submit has the request sent. It reports why it is not.
func (n *node) submit(r *request) *Error {
	if e := n.breaker.closedTo(); e != nil {
		return e
	}
	switch room, open := n.queue.put(r); {
	case !room:
		return overloaded
	case !open:
		return closing
	}
	return nil
}

var (
	overloaded = &Error{Reason: Overload, Text: "too much waits for the node", NotDone: true}
	closing    = &Error{Reason: Closing, NotDone: true}
	late       = &Error{Reason: Timeout, Text: "it waited too long to be sent", NotDone: true}
)

// work sends what waits, all of it at once, and hands the answers out.
func (n *node) work() {
	var batch []*request
	var cmds []redis.Cmder
	for {
		if batch = n.queue.take(batch[:0]); len(batch) == 0 {
			return
		}
		now := n.hooks.elapsed()
		n.used.Store(int64(now))
		if batch = n.fresh(batch, now); len(batch) == 0 {
			continue
		}
		report, ok := n.breaker.allow()
		if !ok {
			n.refuse(batch)
			continue
		}
		cmds = commands(cmds[:0], batch)
		n.execute(cmds)
		n.queue.begin()
		report(n.handOut(batch))
		n.queue.end()
		clear(batch)
		clear(cmds)
	}
}

// fresh answers those that have waited for too long and returns the others.
func (n *node) fresh(batch []*request, now time.Duration) []*request {
	kept := batch[:0]
	for _, r := range batch {
		if now-r.at > n.timeout {
			r.fail(late)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// refuse answers requests that came before the breaker opened.
func (n *node) refuse(batch []*request) {
	why := n.breaker.closedTo()
	if why == nil {
		why = late
	}
	for _, r := range batch {
		r.fail(why)
	}
}

// commands are what to send for the requests.
func commands(cmds []redis.Cmder, batch []*request) []redis.Cmder {
	for _, r := range batch {
		if r.asking {
			cmds = append(cmds, redis.NewStatusCmd(context.Background(), "asking"))
		}
		cmds = append(cmds, r.command())
	}
	return cmds
}

// execute sends commands and reads what is replied; all of it is in the commands.
func (n *node) execute(cmds []redis.Cmder) {
	if len(cmds) == 0 {
		return
	}
	defer func() {
		// The client library panics about replies that are none. Its connection is gone.
		if p := recover(); p != nil {
			for _, c := range cmds {
				c.SetErr(fmt.Errorf("%w: %v", errReply, p))
			}
		}
	}()
	n.stats.pipelines.Add(1)
	pipe := n.client.Pipeline()
	_ = pipe.BatchProcess(context.Background(), cmds...)
	_, _ = pipe.Exec(context.Background())
}

// handOut answers the requests of a pipeline, or sends them elsewhere. It returns why the
// node was of no use, if it was for none.
func (n *node) handOut(batch []*request) (why *Error) {
	useful := false
	var scripts [2]bool // whose text is on its way
	for _, r := range batch {
		n.count(r)
		err := r.cmd.Err()
		if err == nil || err == redis.Nil && r.onGet != nil { //nolint:errorlint // it is never wrapped, and this is the way of every request
			if r.answer() {
				useful = true
			} else {
				why = malformed
			}
			continue
		}
		e, again := n.classify(r, err, &scripts)
		if e.useless() {
			why = e
		} else {
			useful = true
		}
		if !again {
			n.stats.failures.Add(1)
			r.fail(e)
		}
	}
	if useful {
		return nil
	}
	return why
}

func (n *node) count(r *request) {
	if r.writes() {
		n.stats.swaps.Add(1)
		return
	}
	n.stats.gets.Add(1)
}

// classify says what err means for the node, and sends the request again, here or elsewhere, if
// that helps.
func (n *node) classify(r *request, err error, scripts *[2]bool) (e *Error, again bool) {
	if !isReply(err) || !r.key.sent {
		e = failed(err, r.key.sent)
		n.hooks.trouble()
		// A connection that was closed while nobody used it is no news about the store.
		if again = e.Reason == Broken && (e.NotDone || !r.writes()) && n.tryAgain(r, 1); again {
			n.hooks.again(r)
		}
		return e, again
	}
	if errors.Is(err, redis.Nil) { // which no script returns
		return malformed, false
	}
	e = replied(err.Error())
	switch e.Reason {
	case "READONLY", "MASTERDOWN", "CLUSTERDOWN":
		n.hooks.trouble()
	case "MOVED", "ASK", "TRYAGAIN", "NOSCRIPT":
		again = n.tryAgain(r, mostTries) && n.redirect(r, e.Reason, err.Error(), scripts)
	}
	return e, again
}

// redirect does what the reply asks for.
func (n *node) redirect(r *request, word, text string, scripts *[2]bool) bool {
	switch word {
	case "TRYAGAIN": // the keys are on their way from one node to another
		n.hooks.after(time.Millisecond<<r.tries, func() { n.hooks.again(r) })
		return true
	case "NOSCRIPT":
		which := 0
		if r.onAll != nil {
			which = 1
		}
		// One has the text with it, and the others of this pipeline follow behind.
		r.eval = !scripts[which] || r.tries > 3
		scripts[which] = true
		n.hooks.at(n.addr, r)
		return true
	}
	slot, addr, ok := redirection(text)
	if !ok {
		return false
	}
	n.stats.redirected.Add(1)
	addr = reachable(addr, n.addr)
	if r.asking = word == "ASK"; !r.asking {
		n.hooks.moved(slot, addr)
	}
	n.hooks.at(addr, r)
	return true
}

// tryAgain reports whether a request may be sent once more.
func (n *node) tryAgain(r *request, most uint8) bool {
	if r.tries >= most || n.hooks.elapsed()-r.at > n.timeout {
		return false
	}
	r.tries++
	return true
}
