package engine

import (
	"context"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/cluster/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/redis/go-redis/v9"
)

// Options configure an engine. All fields but Log and MaxSkew are required.
type Options struct {
	Address *Address
	// Prefix precedes every key. It must not have braces.
	Prefix string
	// MaxValue is the maximum number of bytes of a value; no server writes a longer one. Default 1
	// MiB.
	MaxValue int
	// Timeout is the time limit of one answer.
	Timeout time.Duration
	// MaxSkew is the largest jump of the clock that is not logged; 0 logs none.
	MaxSkew time.Duration
	// Elapsed reads a monotonic clock.
	Elapsed func() time.Duration
	Log     *slog.Logger
	// Dial connects to a node; nil means that of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Engine is the client of the Valkey or Redis that stores the values. Any goroutine may use it.
type Engine struct {
	o     Options
	dial  *dialer
	clock clock.Clock

	routes  atomic.Pointer[routes]
	known   atomic.Bool // the nodes have been known at some time
	settled atomic.Bool // the clock may be read: see timed
	stale   chan struct{}
	refused *queue // requests that are answered without a node
	tasks   *tasks
	fault   atomic.Pointer[string] // reason why the nodes are unknown

	stop    chan struct{}
	closing atomic.Bool
	done    sync.WaitGroup
	later   sync.WaitGroup
	ending  sync.WaitGroup // of nodes that are being closed

	mu        sync.Mutex
	nodes     map[string]*node
	contacts  map[string]*redis.Client
	sentinels map[string]*redis.SentinelClient
	versions  map[string]inspection
}

// routes map slots to nodes.
type routes struct {
	slots []*node // nil for a standalone node
	all   *node
	// masters are the nodes, in the order of their slots.
	masters []*node
}

func (r *routes) node(slot int) *node {
	if r.slots == nil {
		return r.all
	}
	return r.slots[slot]
}

// Now returns the instant of the clock that all servers of the store share. Before it is known, the
// engine answers nothing, and Now returns the epoch.
func (e *Engine) Now() limit.Instant {
	if !e.timed() {
		return 0
	}
	now, _ := e.clock.Now(e.o.Elapsed())
	return now
}

// timed reports whether the time is known: every master has reported its clock, or has had a second
// for it since the first did. Otherwise a single master with a wrong clock could set the time if it
// answers first.
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

// Slot returns the number of the key's hash slot; 0 for all keys of a standalone node.
func (e *Engine) Slot(key []byte) int {
	if r := e.routes.Load(); r == nil || r.slots != nil {
		return slotOf(e.o.Prefix, key)
	}
	return 0
}

// Get reads the value of a key; raw is nil if there is none. done is called on another goroutine,
// within about the time limit.
func (e *Engine) Get(key []byte, done func(raw []byte, err error)) {
	e.submit(newGet(e.o.Prefix, key, e.Slot(key), e.o.MaxValue, done))
}

// Swap writes w.New if the value still begins with the tag with which w.Old begins. Otherwise now
// is the present value; nil if there is no such key. w belongs to the engine until done is called,
// on another goroutine.
func (e *Engine) Swap(w Write, done func(applied bool, now []byte, err error)) {
	e.submit(newSwap(e.o.Prefix, w, e.Slot(w.Key), done))
}

// SwapAll compares all values, then writes all or none. The keys, at least one, must be in one
// slot. If applied is false, now has the present value of each key.
func (e *Engine) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	e.submit(newSwapAll(e.o.Prefix, ws, e.Slot(ws[0].Key), done))
}

func (e *Engine) submit(r *request) {
	r.at = e.o.Elapsed()
	e.again(r)
}

// starting is the error before any node has answered.
var starting = &Error{Reason: Starting, Text: "the store has not answered yet", NotDone: true}

// again sends the request to the node of its slot.
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

// at sends the request to the node at addr.
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

// refuse answers a request on another goroutine, since its caller may hold locks.
func (e *Engine) refuse(r *request, why *Error) {
	r.refusal = why
	if _, open := e.refused.put(r); !open {
		r.fail(why)
	}
}

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

// after calls f later, and at once if the engine is being closed.
func (e *Engine) after(d time.Duration, f func()) {
	e.later.Add(1)
	time.AfterFunc(d, func() {
		defer e.later.Done()
		f()
	})
}

// trouble makes the topology be read soon.
func (e *Engine) trouble() {
	select {
	case e.stale <- struct{}{}:
	default:
	}
}

// node returns the node at addr; nil if the engine is being closed, or knows too many nodes. A
// listed node has slots, so it is probed.
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

// changed logs that requests to a node have stopped, or continue. It must not block.
func (e *Engine) changed(addr string, open bool, why string) {
	if open {
		e.o.Log.Warn("a node of the store is not asked until it answers a probe", "node", addr, "reason", why)
		e.trouble()
		return
	}
	e.o.Log.Info("a node of the store answers again", "node", addr)
}

// moved notes that a slot is at addr, until the whole topology has been read.
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

// inspected stores what a node reports about itself, and warns once about each problem.
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
