package engine

import (
	"context"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/clock"
	"github.com/redis/go-redis/v9"
)

// Options configures an engine. Address, Timeout and Elapsed are required. Log gets messages for
// operators; nil means no log.
type Options struct {
	Address *Address
	// Prefix is put before every key. It must not contain braces.
	Prefix string
	// Hidden is the beginning of keys, after Prefix, that Scan, Count and Flush leave out. With ""
	// no key is hidden.
	Hidden string
	// MaxValue is the maximum number of bytes of a value that [Engine.Get] returns: for a longer
	// value it fails with the reason WRONGTYPE. The default is 1 MiB.
	MaxValue int
	// Timeout is the time limit of one answer of a node.
	Timeout time.Duration
	// MaxSkew is the largest jump of the engine's clock that is not logged; 0 logs none.
	MaxSkew time.Duration
	// Elapsed reads a monotonic clock, which also measures the time limits.
	Elapsed func() time.Duration
	Log     *slog.Logger
	// Dial connects to a node, without TLS. The default is a dialer of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Engine is the client of the Valkey or Redis that stores the values. Any number of goroutines
// may use it.
type Engine struct {
	o     Options
	dial  *dialer
	clock clock.Clock

	routes  atomic.Pointer[routes]
	known   atomic.Bool // whether the nodes were ever known
	settled atomic.Bool // whether the clock may be read: see timed
	stale   chan struct{}
	refused *queue // requests that are answered without being sent to a node
	tasks   *tasks
	fault   atomic.Pointer[string] // the reason why the nodes are unknown; nil if they are known

	stop    chan struct{}
	closing atomic.Bool
	done    sync.WaitGroup
	later   sync.WaitGroup
	ending  sync.WaitGroup // counts the nodes that are being closed

	mu        sync.Mutex
	nodes     map[string]*node
	contacts  map[string]*redis.Client
	sentinels map[string]*redis.SentinelClient
	versions  map[string]inspection
}

// routes maps slots to nodes. A routes is never changed: a new one replaces it.
type routes struct {
	slots []*node // the node of each slot; nil for a standalone node
	all   *node
	// masters are the masters, in the order of their first slots.
	masters []*node
}

// node returns the node for the slot, nil if no node is known to have it.
func (r *routes) node(slot int) *node {
	if r.slots == nil {
		return r.all
	}
	return r.slots[slot]
}

// Now returns the present instant of the clock that all servers of the store share. Before that
// clock is known, Now returns 0, and requests fail with the reason Starting.
func (e *Engine) Now() limit.Instant {
	if !e.timed() {
		return 0
	}
	now, _ := e.clock.Now(e.o.Elapsed())
	return now
}

// timed reports whether the time is known: every master has reported its clock, or sampleEvery, one
// second, has passed since the first master did. Without that second, a single master with a wrong
// clock could set the time by answering first.
func (e *Engine) timed() bool {
	if e.settled.Load() {
		return true
	}
	way := e.routes.Load()
	if way == nil || !e.clock.Ready() {
		return false
	}
	now, first, all := int64(e.o.Elapsed()), int64(math.MaxInt64), true
	for _, n := range way.masters {
		at := n.sampled.Load()
		all = all && at > 0
		if at > 0 {
			first = min(first, at)
		}
	}
	if !all && now-int64(sampleEvery) < first {
		return false
	}
	e.settled.Store(true)
	return true
}

// Slot returns the number of the hash slot of key, which is without the prefix. It returns 0 for
// all keys once the engine is known to be a standalone node.
func (e *Engine) Slot(key []byte) int {
	if r := e.routes.Load(); r == nil || r.slots != nil {
		return slotOf(e.o.Prefix, key)
	}
	return 0
}

// Get reads the value of key. done is called once, on any goroutine, in bounded time. raw is nil if
// the key is absent. An err is an [*Error].
func (e *Engine) Get(key []byte, done func(raw []byte, err error)) {
	e.submit(newGet(e.o.Prefix, key, e.Slot(key), e.o.MaxValue, done))
}

// Swap writes w.New if the value still begins with the first TagLen bytes of w.Old. Otherwise
// applied is false, and now is the present value, nil if the key is absent. done is called once, on
// any goroutine, in bounded time. The bytes of w belong to the engine until then. An err is an
// [*Error], which says whether the outcome is unknown.
func (e *Engine) Swap(w Write, done func(applied bool, now []byte, err error)) {
	e.submit(newSwap(e.o.Prefix, w, e.Slot(w.Key), done))
}

// SwapAll compares the values of all keys in ws, at least one, then does all writes or none. The
// keys must be in one slot. If applied is false, now has the present value of each key. done and
// errors are as for Swap.
func (e *Engine) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	e.submit(newSwapAll(e.o.Prefix, ws, e.Slot(ws[0].Key), done))
}

// submit sends a new request to the node of its slot.
func (e *Engine) submit(r *request) {
	r.at = e.o.Elapsed()
	e.again(r)
}

// starting is the error for requests before the nodes and their time are known.
var starting = &Error{Reason: Starting, Text: "the store has not answered yet", NotDone: true}

// again sends the request r to the node of its slot, or answers it with an error.
func (e *Engine) again(r *request) {
	switch way := e.routes.Load(); {
	case e.closing.Load():
		e.refuse(r, closing)
	case way == nil || !e.timed():
		e.refuse(r, starting)
	case way.node(r.slot) == nil:
		e.trouble()
		e.refuse(r, &Error{Reason: "CLUSTERDOWN", Text: "no node has the slot", NotDone: true})
	default:
		if why := way.node(r.slot).submit(r); why != nil {
			e.refuse(r, why)
		}
	}
}

// at sends the request r to the node at addr, or answers it with an error.
func (e *Engine) at(addr string, r *request) {
	n := e.node(addr, false)
	if n == nil {
		e.refuse(r, closing)
		return
	}
	if why := n.submit(r); why != nil {
		e.refuse(r, why)
	}
}

// refuse answers the request r with why, on another goroutine, since its caller may hold locks. If
// the engine is closed, refuse itself calls the callback of r.
func (e *Engine) refuse(r *request, why *Error) {
	r.refusal = why
	if _, open := e.refused.put(r); !open {
		r.fail(why)
	}
}

// answerRefused answers the requests that refuse has queued, until the queue is closed.
func (e *Engine) answerRefused() {
	var batch []*request
	for {
		if batch = e.refused.take(batch[:0]); len(batch) == 0 {
			return
		}
		for _, r := range batch {
			r.fail(r.refusal)
		}
		clear(batch)
	}
}

// after calls f after d, on another goroutine. Close waits for f.
func (e *Engine) after(d time.Duration, f func()) {
	e.later.Add(1)
	time.AfterFunc(d, func() {
		defer e.later.Done()
		f()
	})
}

// trouble makes follow read the topology soon, because it may have changed. It does not block.
func (e *Engine) trouble() {
	select {
	case e.stale <- struct{}{}:
	default:
	}
}

// node returns the node at addr, and creates it if necessary. It returns nil if the node is new and
// the engine is being closed or has too many nodes. listed says that the node has slots; such a
// node is probed.
func (e *Engine) node(addr string, listed bool) *node {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.nodes[addr]; n != nil {
		if listed {
			n.listed.Store(true)
		}
		return n
	}
	if e.closing.Load() || len(e.nodes) > mostNodes {
		return nil
	}
	c := newClient(addr, e.o.Address.Login, e.dial, e.o.Timeout)
	n := newNode(addr, c, e.o.Timeout, hooks{
		elapsed: e.o.Elapsed, again: e.again, at: e.at, moved: e.moved,
		trouble: e.trouble, after: e.after, changed: e.changed,
	})
	n.used.Store(int64(e.o.Elapsed()))
	n.listed.Store(listed)
	e.nodes[addr] = n
	n.done.Go(func() { n.watch(e.o.Prefix, &e.clock, e.inspected) })
	return n
}

// changed logs that requests are no longer sent to the node at addr (open is true, and why is the
// reason), or that they are sent again (open is false). It does not block.
func (e *Engine) changed(addr string, open bool, why string) {
	if open {
		e.o.Log.Warn("a node of the store is not asked until it answers a probe", "node", addr, "reason", why)
		e.trouble()
		return
	}
	e.o.Log.Info("a node of the store answers again", "node", addr)
}

// moved records that the slot is at the node addr, until the whole topology is read again, and
// makes follow read the topology soon.
func (e *Engine) moved(slot int, addr string) {
	n := e.node(addr, true)
	if n == nil {
		return
	}
	e.mu.Lock()
	if old := e.routes.Load(); old != nil && old.slots != nil && old.slots[slot] != n {
		next := *old
		next.slots = append([]*node(nil), old.slots...)
		next.slots[slot] = n
		e.routes.Store(&next)
	}
	e.mu.Unlock()
	e.trouble()
}

// inspected stores what the node at addr reports about itself in info, its reply to INFO. It logs a
// new version and new warnings.
func (e *Engine) inspected(addr, info string) {
	is := inspectInfo(info)
	e.mu.Lock()
	old := e.versions[addr]
	e.versions[addr] = is
	e.mu.Unlock()
	if old.version != is.version {
		e.o.Log.Info("a node of the store answers", "node", addr, "version", is.version)
	}
	for i, w := range is.warnings {
		if i >= len(old.warnings) || old.warnings[i] != w {
			e.o.Log.Warn("a node of the store is set up so that limits may be lost", "node", addr, "advice", w)
		}
	}
}
