package adapter

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
)

// room is a Remote that wakes waiting clients of this server when a call of this server may have
// made room. Calls of other servers do not wake them, so the first client of each queue also polls.
type room struct {
	env.Remote
	waiting *queues
}

// Remote returns the Remote for the field Remote of [env.Options]. It decides asks as the decider
// of s does, and wakes clients of this server that wait for room when an ask may have made room.
func (s *Stores) Remote() env.Remote { return room{s.decider, &s.waiting} }

// Submit implements [env.Remote]: it submits asks. After done it wakes the first client in the
// queue of each key where the asks may have made room.
func (r room) Submit(asks []*decide.Ask, together bool, done func()) {
	if r.waiting.number.Load() == 0 {
		r.Remote.Submit(asks, together, done)
		return
	}
	var keys []string
	all := false
	for _, a := range asks {
		keys = appendFreed(keys, a)
		all = all || a.Family == decide.Admin && a.Admin.Op == decide.Flush
	}
	if len(keys) == 0 && !all {
		r.Remote.Submit(asks, together, done)
		return
	}
	r.Remote.Submit(asks, together, func() {
		for _, a := range asks {
			keys = appendReached(keys, a)
		}
		done()
		if all {
			r.waiting.wakeAll()
			return
		}
		for _, key := range keys {
			r.waiting.wake(key)
		}
	})
}

// appendReached appends to keys the keys of the further states that the decided ask a has used, and returns the result.
func appendReached(keys []string, a *decide.Ask) []string {
	if a.Family != decide.Joint {
		return keys
	}
	if p, is := a.Program.(decide.Reaching); is {
		for _, key := range p.States() {
			keys = append(keys, string(key))
		}
	}
	return keys
}

// appendFreed appends to keys the keys under which the ask a may make room, and returns the result.
func appendFreed(keys []string, a *decide.Ask) []string {
	switch a.Family {
	case decide.Window:
		if a.Window.Quantity < 0 {
			keys = append(keys, string(a.Key))
		}
	case decide.Bucket:
		if a.Bucket.Quantity < 0 {
			keys = append(keys, string(a.Key))
		}
	case decide.Lease:
		if a.Lease.Op != concurrency.Acquire {
			keys = append(keys, string(a.Key))
		}
	case decide.Settle:
		keys = append(keys, string(a.Key))
	case decide.Several:
		for i := range a.Clauses {
			if w := a.Clauses[i].Window; w != nil && w.Quantity < 0 {
				keys = append(keys, string(a.Clauses[i].Key))
			}
		}
	case decide.Joint:
		if p, is := a.Program.(decide.Freeing); is && p.Frees() {
			keys = append(keys, string(a.Key))
			for _, key := range a.Others {
				keys = append(keys, string(key))
			}
		}
	case decide.Admin:
		if a.Admin.Op == decide.Delete || a.Admin.Op == decide.Expire {
			keys = append(keys, string(a.Key))
		}
	}
	return keys
}
