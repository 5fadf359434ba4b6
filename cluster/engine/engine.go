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

// Options are what an engine is opened with. All but Log and MaxSkew are needed.
type Options struct {
	Address *Address
	// Prefix stands before every key. It has no braces.
	Prefix string
	// MaxValue is the most bytes of a value that is read: a longer one is somebody else's.
	// Default 1 MiB.
	MaxValue int
	// Timeout is the time limit of one answer.
	Timeout time.Duration
	// MaxSkew is what the clock may be off at once without a line in the log; 0 is all.
	MaxSkew time.Duration
	// Elapsed is a stopwatch that nobody sets.
	Elapsed func() time.Duration
	Log     *slog.Logger
	// Dial connects with a node; nil is package net's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Engine is the Valkey or Redis that has the values. Any goroutine may use it.
type Engine struct {
	o     Options
	dial  *dialer
	clock clock.Clock

	routes  atomic.Pointer[routes]
	known   atomic.Bool // it was once seen which nodes there are
	settled atomic.Bool // the clock may be read: see timed
	stale   chan struct{}
	refused *queue // of requests that are answered without a node
	tasks   *tasks
	fault   atomic.Pointer[string] // why it is not known which nodes there are

	stop    chan struct{}
	closing atomic.Bool
	done    sync.WaitGroup
	later   sync.WaitGroup
	ending  sync.WaitGroup // of nodes that are no more

	mu        sync.Mutex
	nodes     map[string]*node
	contacts  map[string]*redis.Client
	sentinels map[string]*redis.SentinelClient
	versions  map[string]inspection
}

// routes say which node has which slot.
type routes struct {
	slots []*node // nil for a node by itself
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

// Now is the instant of the clock that all servers of the store share. Before it is known
// the engine answers nothing, and the instant is the epoch.
func (e *Engine) Now() limit.Instant {
	if !e.timed() {
		return 0
	}
	now, _ := e.clock.Now(e.o.Elapsed())
	return now
}

// timed reports whether the time is known: each master has said what its clock shows, or has
// had a second to do so since the first did. One that is wrong and answers first would
// otherwise set the clock.
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

// Slot is the number of the key's hash slot; 0 for all where there is one node.
func (e *Engine) Slot(key []byte) int {
	if r := e.routes.Load(); r == nil || r.slots != nil {
		return slotOf(e.o.Prefix, key)
	}
	return 0
}

// Get reads the value of a key; raw is nil if there is none. done is called on another
// goroutine, within about the time limit.
func (e *Engine) Get(key []byte, done func(raw []byte, err error)) {
	e.submit(newGet(e.o.Prefix, key, e.Slot(key), e.o.MaxValue, done))
}

// Swap writes w.New if the value still begins with the tag that w.Old begins with. now is
// what is there if it does not; nil if there is no such key. w belongs to the engine until
// done is called, on another goroutine.
func (e *Engine) Swap(w Write, done func(applied bool, now []byte, err error)) {
	e.submit(newSwap(e.o.Prefix, w, e.Slot(w.Key), done))
}

// SwapAll compares all, then writes all or none. The keys, at least one, are of one slot.
// now has what is there of each, if applied is false.
func (e *Engine) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	e.submit(newSwapAll(e.o.Prefix, ws, e.Slot(ws[0].Key), done))
}

func (e *Engine) submit(r *request) {
	r.at = e.o.Elapsed()
	e.again(r)
}

// starting is why nothing is asked yet.
var starting = &Error{Reason: Starting, Text: "the store has not answered yet", NotDone: true}

// again has the node of the request's slot asked.
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

// at has the node at addr asked.
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

// refuse answers a request on a goroutine of its own: who submits it may hold locks.
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

// trouble has the topology looked at soon.
func (e *Engine) trouble() {
	select {
	case e.stale <- struct{}{}:
	default:
	}
}

// node returns the node at addr; nil if the engine is being closed, or knows too many nodes.
// A listed one has slots, so that it is watched.
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

// changed writes down that a node is asked no more, or again. It may not block.
func (e *Engine) changed(addr string, open bool, why string) {
	if open {
		e.o.Log.Warn("a node of the store is not asked until it answers a probe", "node", addr, "reason", why)
		e.trouble()
		return
	}
	e.o.Log.Info("a node of the store answers again", "node", addr)
}

// moved notes that a slot is at addr, until all of the topology is known.
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

// inspected keeps what a node says about itself, and warns once of what is wrong with it.
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
