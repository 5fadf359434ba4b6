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

// mostTries is the maximum number of times that a request is sent again, to the same or another
// node.
const mostTries = 8

// hooks are functions of the engine that its nodes call. None of them blocks.
type hooks struct {
	elapsed func() time.Duration
	// again sends a request to the node of its slot. at sends it to the node at addr.
	again func(r *request)
	at    func(addr string, r *request)
	// moved records that a slot is at addr now. trouble records that slots may have moved.
	moved   func(slot int, addr string)
	trouble func()
	// after calls f after d, on another goroutine.
	after func(d time.Duration, f func())
	// changed is called with open true and the reason why when requests are no longer sent to the
	// node at addr, and with open false when they are sent again.
	changed func(addr string, open bool, why string)
}

// node is a master node with its waiting requests and the workers that send them.
type node struct {
	addr    string
	timeout time.Duration
	client  *redis.Client // client of the node for the workers
	control *redis.Client // client with the same connections and the time limit controlTimeout
	calls   *redis.Client // client with the same connections and the time limit callTimeout
	hooks   hooks
	queue   *queue
	breaker *breaker
	stats   nodeStats
	listed  atomic.Bool // whether the node has slots, as far as is known
	used    atomic.Int64
	// replicas is the number of replicas when Confirm last read it.
	replicas atomic.Int64
	sampled  atomic.Int64 // the time at which the node first reported its clock; 0 before
	stop     chan struct{}
	done     sync.WaitGroup
}

// nodeStats counts the requests to a node, and has the round-trip time of its latest probe.
type nodeStats struct {
	gets, swaps, pipelines, failures, redirected atomic.Int64
	rtt                                          atomic.Int64 // the round-trip time in nanoseconds
}

// newNode returns the node at addr, and starts its workers. timeout is the time limit of a
// request.
func newNode(addr string, client *redis.Client, timeout time.Duration, h hooks) *node {
	n := &node{
		addr: addr, timeout: timeout, client: client, control: client.WithTimeout(controlTimeout),
		calls: client.WithTimeout(callTimeout), hooks: h, queue: newQueue(mostWaiting), stop: make(chan struct{}),
	}
	n.breaker = newBreaker(func(open bool, why string) { h.changed(addr, open, why) })
	for range workers {
		n.done.Go(n.work)
	}
	return n
}

// close closes the connections, ends the goroutines of the node, and waits for them. Requests in
// the queue are answered with an error.
func (n *node) close() {
	close(n.stop)
	n.queue.close()
	_ = n.client.Close()
	n.done.Wait()
}

// submit puts the request r into the queue, or returns the reason why it cannot. Then the caller
// still has to answer r.
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

// work is one of the workers: it sends the waiting requests in one pipeline, hands out the
// answers, and repeats that until the queue is closed and empty.
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

// fresh answers the requests in batch that have waited for longer than the time limit, and
// returns the others.
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

// refuse answers requests, which were queued before the breaker opened, with the error of the
// breaker, or with late if the breaker has closed again.
func (n *node) refuse(batch []*request) {
	why := n.breaker.closedTo()
	if why == nil {
		why = late
	}
	for _, r := range batch {
		r.fail(why)
	}
}

// commands appends the commands of the requests in batch to cmds. Before the command of a request
// with asking set, it appends ASKING.
func commands(cmds []redis.Cmder, batch []*request) []redis.Cmder {
	for _, r := range batch {
		if r.asking {
			cmds = append(cmds, redis.NewStatusCmd(context.Background(), "asking"))
		}
		cmds = append(cmds, r.command())
	}
	return cmds
}

// execute sends cmds in one pipeline and reads the replies into them. If the client library panics,
// each command gets an error. execute blocks.
func (n *node) execute(cmds []redis.Cmder) {
	if len(cmds) == 0 {
		return
	}
	defer func() {
		// The client library panics on malformed replies. It has then closed the connection.
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

// handOut answers the requests of a pipeline, or sends them again if that can help. If the node was
// unusable for all of them, why is the reason; otherwise why is nil.
func (n *node) handOut(batch []*request) (why *Error) {
	useful := false
	var scripts [2]bool // whether a request is already sent again with the text of the script: of swapOne, and of swapSeveral
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

// classify returns e, the error that err means for the request r. If sending r again can help,
// classify sends r again, to this or another node, and again is true.
func (n *node) classify(r *request, err error, scripts *[2]bool) (e *Error, again bool) {
	if !isReply(err) || !r.key.sent {
		e = failed(err, r.key.sent)
		n.hooks.trouble()
		// A connection that the node has closed because it was idle is not a failure of the node.
		if again = e.Reason == Broken && (e.NotDone || !r.writes()) && n.tryAgain(r, 1); again {
			n.hooks.again(r)
		}
		return e, again
	}
	if errors.Is(err, redis.Nil) { // no script returns nil
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

// redirect sends the request r to the node that the error reply requires, and reports whether it
// has. word is the first word of the reply, and text the whole reply.
func (n *node) redirect(r *request, word, text string, scripts *[2]bool) bool {
	switch word {
	case "TRYAGAIN": // the keys are moving from one node to another
		n.hooks.after(time.Millisecond<<r.tries, func() { n.hooks.again(r) })
		return true
	case "NOSCRIPT":
		which := 0
		if r.onAll != nil {
			which = 1
		}
		// The first such request of the pipeline sends the text of the script. The later ones are
		// sent after it.
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

// tryAgain reports whether the request r may be sent once more, and counts that. It may be if it
// was sent again fewer than most times, and its time limit has not passed.
func (n *node) tryAgain(r *request, most uint8) bool {
	if r.tries >= most || n.hooks.elapsed()-r.at > n.timeout {
		return false
	}
	r.tries++
	return true
}
