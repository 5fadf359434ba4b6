package engine

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// refreshEvery is the interval at which the topology is read from the nodes if nothing happens.
	// sentinelLook is this interval if there are Sentinels. refreshGap is the minimum time between
	// two reads, and retryEvery the time between a failed read and the next one.
	refreshEvery = 15 * time.Second
	sentinelLook = time.Second
	refreshGap   = 100 * time.Millisecond
	retryEvery   = 500 * time.Millisecond
	// unusedFor is the time after which an unused node without slots is closed and forgotten.
	unusedFor = time.Minute
)

// follow reads the topology at intervals and keeps the routes up to date, until the engine is
// closed.
func (e *Engine) follow() {
	for {
		next := refreshEvery
		if e.o.Address.Master != "" {
			next = sentinelLook
		}
		t, err := e.look()
		if err != nil {
			next = retryEvery
			e.lost(err)
		} else {
			e.adopt(t)
		}
		if !e.pause(refreshGap, nil) || !e.pause(next, e.stale) {
			return
		}
	}
}

// pause waits for d, or until it receives from goOn, which may be nil. It returns false when the
// engine is being closed.
func (e *Engine) pause(d time.Duration, goOn <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.stop:
		return false
	case <-goOn:
	case <-t.C:
	}
	return true
}

// lost records err as the reason why the nodes are unknown, and logs it if it is new.
func (e *Engine) lost(err error) {
	why := err.Error()
	if isReply(err) {
		why = replied(lastReply(err)).Error()
	}
	if old := e.fault.Swap(&why); (old == nil || *old != why) && !e.closing.Load() {
		e.o.Log.Warn("the store does not say which nodes it has", "error", why)
	}
}

// look asks the known nodes, or the Sentinels, one by one until one of them reports the topology.
// It blocks for 5 seconds at most. It returns the error of the last node or Sentinel that it has
// asked.
func (e *Engine) look() (*topology, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var last error
	if name := e.o.Address.Master; name != "" {
		for _, addr := range e.o.Address.Hosts {
			t, err := askSentinel(ctx, e.sentinel(addr), name, addr)
			if err == nil {
				return t, nil
			}
			last = err
		}
		return nil, last
	}
	several := len(e.o.Address.Hosts) > 1
	for _, addr := range e.whom() {
		t, err := askNode(ctx, e.contact(addr), addr, several)
		if err == nil {
			return t, nil
		}
		if last = err; e.closing.Load() {
			break
		}
	}
	return nil, last
}

// whom returns the addresses of the nodes to ask for the topology: first up to three masters of a
// cluster that answer, then the hosts of the URL.
func (e *Engine) whom() []string {
	var all []string
	if r := e.routes.Load(); r != nil && r.slots != nil {
		for _, n := range r.masters {
			if n.breaker.closedTo() == nil {
				all = append(all, n.addr)
			}
		}
		if len(all) > 3 {
			all = all[:3]
		}
	}
	for _, addr := range e.o.Address.Hosts {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

// contact returns a client of the node at addr for requests with controlTimeout, and creates it if
// necessary.
func (e *Engine) contact(addr string) *redis.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.nodes[addr]; n != nil {
		return n.control
	}
	c := e.contacts[addr]
	if c == nil {
		c = newClient(addr, e.o.Address.Login, e.dial, controlTimeout)
		e.contacts[addr] = c
		if e.closing.Load() {
			_ = c.Close()
		}
	}
	return c
}

// sentinel returns a client of the Sentinel at addr, and creates it if necessary.
func (e *Engine) sentinel(addr string) *redis.SentinelClient {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.sentinels[addr]
	if c == nil {
		c = newSentinel(addr, e.o.Address.Sentinel, e.dial)
		e.sentinels[addr] = c
		if e.closing.Load() {
			_ = c.Close()
		}
	}
	return c
}

// adopt replaces the routes by the routes of t, so that requests are sent to the nodes of t. The
// routes stay as they are if a node of t cannot be created.
func (e *Engine) adopt(t *topology) {
	old := e.fault.Swap(nil)
	if first := !e.known.Swap(true); old != nil || first {
		e.o.Log.Info("the store said which nodes it has", "masters", len(t.masters), "cluster", t.cluster)
	}
	next := &routes{}
	for _, addr := range t.masters {
		n := e.node(addr, true)
		if n == nil {
			return
		}
		next.masters = append(next.masters, n)
	}
	if t.cluster {
		next.slots = make([]*node, slots)
		for s, at := range t.slots {
			if at >= 0 {
				next.slots[s] = next.masters[at]
			}
		}
	} else {
		next.all = next.masters[0]
	}
	e.mu.Lock()
	e.routes.Store(next)
	e.mu.Unlock()
	e.forget(next.masters)
}

// forget marks nodes that are not in masters as having no slots, and closes those that have been
// unused for longer than unusedFor.
func (e *Engine) forget(masters []*node) {
	now := e.o.Elapsed()
	e.mu.Lock()
	defer e.mu.Unlock()
	for addr, n := range e.nodes {
		if slices.Contains(masters, n) {
			continue
		}
		n.listed.Store(false)
		if now-time.Duration(n.used.Load()) > unusedFor && n.queue.len() == 0 && !e.closing.Load() {
			delete(e.nodes, addr)
			delete(e.versions, addr)
			e.ending.Go(n.close)
		}
	}
}
