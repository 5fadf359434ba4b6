package remote

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Store decides asks whose state is in an engine. Any number of goroutines may use a Store.
type Store struct {
	exchanger
	// overall carries out asks about all keys; nil if the engine cannot list its keys.
	overall overall
	opened  opened
}

// overall carries out the operations Scan, Count and Flush in the engine, which may take longer
// than the store's time limit. done is called once, in bounded time.
type overall interface {
	Overall(a *decide.Ask, done func())
}

func newStore(e engine, t timing, p policy, l limits) *Store {
	s := new(Store)
	s.engine, s.timing, s.policy, s.limits = e, t, p, l
	s.writer = t.Number()
	s.open(l.prefix)
	s.leased = l.leased
	return s
}

// Now returns the present instant of the clock by which the store decides.
func (s *Store) Now() limit.Instant { return s.timing.Now() }

// Submit starts to decide asks, and does not wait for the engine. When all asks have been answered,
// done is called once, on any goroutine, and perhaps before Submit returns. Asks are answered
// within the time limit of the store, or shortly after it; asks about all keys may take longer.
// Asks about one key are decided in the order in which they were submitted, except that a refusal
// may be repeated at once. If together is true and the keys of all asks are in one slot, all asks
// but those about all keys are decided at one instant.
//
// Until done is called, the asks and the bytes to which they refer belong to the store and must
// not change. Afterwards the store no longer uses them.
func (s *Store) Submit(asks []*decide.Ask, together bool, done func()) {
	f := &flight{items: make([]item, len(asks)), done: done}
	f.left.Store(int32(len(asks) + 1))
	s.count.asks.Add(int64(len(asks)))
	hides := false
	for i, a := range asks {
		f.items[i].ask, f.items[i].flight = a, f
		hides = hides || s.hides(a)
	}
	if together && len(f.items) > 1 && !hides {
		s.together(f, s.route)
	} else {
		for i := range f.items {
			s.route(&f.items[i])
		}
	}
	if f.left.Load() > 1 {
		f.stop = s.timing.AfterFunc(s.limits.timeout, func() { s.expire(f) })
	}
	f.answered(1)
}

// route passes the item to the code that decides it.
func (s *Store) route(it *item) {
	switch a := it.ask; {
	case s.hides(a):
		answerForeign(a)
		a.Result.Found = false // not found: an EXISTS may be about a key that the servers do not have
		it.stage = answered
		it.flight.answered(1)
	case a.Family == decide.Several || a.Family == decide.Joint && len(a.Others) > 0:
		s.several(it)
	case a.Family == decide.Admin && a.Admin.Op >= decide.Scan:
		s.all(it)
	default:
		s.enqueue(it)
	}
}

// hides reports whether a is about a key that belongs to the servers and not to their clients: see [Options.Hidden].
func (s *Store) hides(a *decide.Ask) bool {
	hidden := s.limits.hidden
	switch {
	case hidden == "":
		return false
	case a.Family == decide.Several || a.Family == decide.SettleSeveral:
		return slices.ContainsFunc(a.Clauses, func(c decide.Clause) bool { return hasPrefix(c.Key, hidden) })
	}
	return hasPrefix(a.Key, hidden) ||
		a.Family == decide.Joint && slices.ContainsFunc(a.Others, func(key []byte) bool { return hasPrefix(key, hidden) })
}

func hasPrefix(key []byte, prefix string) bool {
	return len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
}

// enqueue answers the item by a remembered refusal or from a lease if possible. Otherwise it puts
// the item into the queue of its key, and starts an exchange if none is running.
func (s *Store) enqueue(it *item) {
	a := it.ask
	shard := &s.shards[s.number(a.Key)]
	shard.mu.Lock()
	k := s.find(shard, a.Key)
	it.place = &k.place
	if s.repeats(k, it) || s.fromLease(k, a) {
		it.stage = answered
		if !k.busy {
			shard.rest(k)
		}
		shard.mu.Unlock()
		it.flight.answered(1)
		return
	}
	s.warm(k, a)
	k.queue.push(it)
	begin := !k.busy
	k.busy = true
	shard.mu.Unlock()
	if begin {
		s.start(k)
	}
}

// all passes an ask about all keys to the engine. After a successful Flush it drops the remembered
// values and refusals of all keys. If the engine cannot list its keys, the ask gets an error.
func (s *Store) all(it *item) {
	if s.overall == nil {
		it.ask.Err = decide.Unavailable("the store has no list of its keys")
		it.flight.answered(1)
		return
	}
	s.overall.Overall(it.ask, func() {
		if it.ask.Admin.Op == decide.Flush && it.ask.Err == nil {
			s.forget()
		}
		it.flight.answered(1)
	})
}

// repeats answers the item by the remembered refusal of k, and reports whether it did. It forgets
// the refusal if deciding the item may free units. The lock of the shard must be held.
func (s *Store) repeats(k *key, it *item) bool {
	d := k.memory.denial
	switch {
	case d == nil:
	case it.mayFree():
		k.memory.denial = nil
	case d.repeat(it.ask, s.timing.Now()):
		s.count.cachedDenials.Add(1)
		return true
	}
	return false
}

// expire lets the policy answer the items of f that have no answer at the deadline, except those
// about all keys.
func (s *Store) expire(f *flight) {
	for i := range f.items {
		if a := s.abandon(&f.items[i]); a != nil {
			s.policy.answer(a, late)
			f.answered(1)
		}
	}
}

// abandon takes the item away from the code that decides it, and returns its ask for the policy. It
// returns nil if the item was answered or abandoned before, or is about all keys.
func (s *Store) abandon(it *item) *decide.Ask {
	p := it.place
	switch {
	case p == nil && it.group != nil:
		return it.group.abandon(it)
	case p == nil:
		return nil // the engine itself bounds the time of an ask about all keys
	}
	p.mu.Lock()
	if g := it.group; g != nil { // the ask is a settlement, which a group has got from the exchange of its key
		p.mu.Unlock()
		return g.abandon(it)
	}
	defer p.mu.Unlock()
	switch it.stage {
	case answered:
		return nil
	case queued:
		p.queue.remove(it)
	case writing:
		if it.abandoned {
			return nil
		}
		a := it.detach()
		was := p.basis.at(it.ask.Now)
		it.refundDue = s.policy.closed(a.Key) && refundable(it.ask, &was)
		return a
	}
	it.stage = answered
	return it.ask
}
