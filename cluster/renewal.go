package cluster

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// renewal is one exchange of a lease with the engine. It gives back the rest of the last lease, and
// takes the units of the next one.
type renewal struct {
	*group
	lease *lease
	// want is the minimum number of units, if there is no earlier lease to estimate from.
	want int64
	// The results of the last decision.
	next    lease
	elapsed time.Duration
	edge    bool          // the lease ends with its window
	waits   time.Duration // time to the end of a window that is too near
	taken   bool
	stop    func() bool // stops the timer of the deadline
}

// warm counts an item that has to wait in the queue of its key, and begins a lease if the key is
// hot. The lock of the shard must be held.
func (x *exchanger) warm(k *key, a *decide.Ask) {
	l := &k.leasing
	if !l.may || l.lease != nil || !leasable(a) {
		return
	}
	elapsed := x.timing.Elapsed()
	if !l.count(elapsed) {
		return
	}
	l.raced = false
	lasts := term(a, x.limits.lease)
	if lasts < shortest {
		l.exact = elapsed + hotSpan
		return
	}
	o := new(renewer)
	n := &lease{call: *a, renewer: o}
	n.call.Key, n.call.Next = []byte(k.name), nil
	*quantityOf(&n.call) = 0
	took := max(elapsed-l.from, time.Millisecond)
	want := limit.SatMul(limit.MulDivCeil(l.calls, int64(lasts)*3/2, int64(took)), *quantityOf(a))
	o.turn = func() *item { return x.renew(k, n, want) }
	l.lease = n
	x.prolong(k)
}

// fromLease answers an item from the lease of its key. The lock of the shard must be held. If the lease
// has to be prolonged first, lends begins that, unless the key is busy.
func (x *exchanger) fromLease(k *key, a *decide.Ask) bool {
	l := k.lease
	if l == nil {
		return false
	}
	if a.Family == decide.Admin && (a.Admin.Op == decide.Delete || a.Admin.Op == decide.Expire) {
		l.left = 0 // the charge is lost together with the key
	}
	if k.busy {
		return false
	}
	elapsed := x.timing.Elapsed()
	if l.decide(a, elapsed, x.timing.Now()) {
		x.count.leased.Add(1)
		return true
	}
	if l.due(a, elapsed) {
		x.prolong(k)
	}
	return false
}

// prolong makes the next lease of a key be taken before the waiting asks are decided. The lock of
// the shard must be held. The caller has to start the key if it is not busy.
func (x *exchanger) prolong(k *key) {
	if l := k.lease; !l.renewing {
		l.renewing = true
		k.memory.denial = nil
		k.queue.pushFirst(l.turn())
	}
}

// prolongAfter prolongs the lease once d has passed, unless it was prolonged before.
func (x *exchanger) prolongAfter(k *key, l *lease, d time.Duration) {
	from := l.from
	x.timing.AfterFunc(d, func() {
		if x.ripe(k, l, from) {
			x.start(k)
		}
	})
}

// ripe begins to prolong the lease of a key, if it is still the one that began at from, and reports
// whether the key has to be started.
func (x *exchanger) ripe(k *key, l *lease, from time.Duration) bool {
	k.shard.mu.Lock()
	defer k.shard.mu.Unlock()
	// A key that was forgotten has no lease.
	if k.lease != l || l.from != from || l.renewing {
		return false
	}
	x.prolong(k)
	if k.busy {
		return false
	}
	k.shard.unlink(k)
	k.busy = true
	return true
}

// renew makes the turn in which a lease is prolonged.
func (x *exchanger) renew(k *key, l *lease, first int64) *item {
	r := &renewal{group: &group{exchanger: x, own: true}, lease: l, want: first}
	g := r.group
	g.turn = &turn{exchanger: x, keys: []*key{k}}
	g.parts = []part{{key: k}}
	g.ended = r.ended
	h := &hold{ready: func() {
		stop := x.timing.AfterFunc(x.limits.timeout, func() { g.locked(func() { g.own = false }) })
		g.locked(func() {
			r.stop = stop
			if r.remembers() {
				r.decide()
				return
			}
			g.look(func(*part) bool { return true }, r.decide)
		})
	}}
	h.missing.Store(1)
	return &item{hold: h, place: &k.place}
}

// remembers uses the remembered value of the key, unless other servers write the key.
func (r *renewal) remembers() bool {
	p := &r.parts[0]
	p.key.shard.mu.Lock()
	defer p.key.shard.mu.Unlock()
	if !r.remembered(p.key) {
		return false
	}
	p.v = p.key.memory.value
	p.seen = p.v.raw
	return true
}

// decide decides which units are given back and taken.
func (r *renewal) decide() {
	g, p := r.group, &r.parts[0]
	if p.err != nil {
		g.end()
		return
	}
	g.now = g.instant()
	r.elapsed = g.timing.Elapsed()
	p.next, p.changes = p.v.at(g.now), false
	r.reckon()
	if !p.changes || !g.prepare(p) {
		r.taken = true
		g.end()
		return
	}
	g.send([]int{0}, func(became outcome) {
		switch {
		case became == done:
			r.taken = true
			g.end()
		case became == notWritten && !g.over():
			g.pauseFor(p, r.decide)
		default:
			g.end()
		}
	})
}

// reckon computes the next lease.
func (r *renewal) reckon() {
	g, p, l := r.group, &r.parts[0], r.lease
	p.key.shard.mu.Lock()
	was := *l
	p.key.shard.mu.Unlock()
	if was.left > 0 && r.mine(&was) {
		r.apply(was.with(-was.left))
	}
	lasts := term(&was.call, g.limits.lease)
	r.waits, r.edge = 0, false
	if was.call.Family == decide.Window {
		lasts = r.toEdge(lasts, untilEdge(&was.call.Window, g.now))
	}
	want := r.want
	if was.lasts > 0 {
		want = was.demand(r.elapsed, lasts)
	}
	if lasts < shortest {
		want = 0
	}
	r.next = lease{from: r.elapsed, lasts: lasts, paid: g.now}
	look := was.with(0)
	if want == 0 || !r.apply(look) {
		r.next.lasts = 0
		return
	}
	r.next.rest = look.Decision.Remaining
	// The remaining units may be more than can be charged, since a charge may have an end beyond
	// the representable time.
	n := min(want, r.next.rest)
	for n > 0 && !r.apply(was.with(n)) {
		n /= 2
	}
	if n == 0 && r.next.rest > 0 {
		r.next.lasts = 0
		return
	}
	r.next.left = n
	r.next.rest -= n
	r.next.all = r.next.left == want
}

// toEdge adapts the duration of a lease to the rest of its window. A lease that ends with the
// window must not be too short.
func (r *renewal) toEdge(lasts, left time.Duration) time.Duration {
	switch {
	case left < shortest:
		r.waits = left
		return left
	case left <= lasts:
		r.edge = true
		return left
	case left < lasts+lasts/20+shortest:
		return left / 2
	}
	return lasts
}

// apply decides an ask about the key, and reports whether it was granted.
func (r *renewal) apply(a *decide.Ask) bool {
	g, p := r.group, &r.parts[0]
	plan := &g.plan.Plan
	if plan.One(&p.next, g.now, a) != nil || !a.Decision.Allowed() {
		return false
	}
	return g.apply(p, plan) == nil
}

// mine reports whether the value in the engine still contains the charge of the lease: the key was
// not deleted since, and the window is the same.
func (r *renewal) mine(was *lease) (found bool) {
	g, p := r.group, &r.parts[0]
	if c := &was.call.Window; was.call.Family == decide.Window && g.now.Sub(was.paid) >= untilEdge(c, was.paid) {
		return false
	}
	p.v.writers(func(one tag) bool {
		found = one.writer() == g.writer && int32(uint32(one)-uint32(was.tag)) >= 0
		return !found
	})
	return found
}

// ended begins the next lease. Without one, the rest of the last lease is forfeited.
func (r *renewal) ended() {
	g, p, l, n := r.group, &r.parts[0], r.lease, r.next
	r.stop()
	k := p.key
	k.shard.mu.Lock()
	defer k.shard.mu.Unlock()
	if k.lease != l {
		return
	}
	l.renewing = false
	if r.taken && r.waits > 0 {
		l.pause(r.elapsed, r.waits)
		g.prolongAfter(k, l, r.waits)
		return
	}
	if !r.taken || n.lasts == 0 {
		k.lease, k.exact = nil, g.timing.Elapsed()+hotSpan
		return
	}
	n.call, n.renewer, n.state, n.tag = l.call, l.renewer, p.v.entry, p.v.tag
	// The random part keeps servers from asking all at the same time. Units that were taken from
	// one window are not for the next.
	next := n.lasts*95/100 + g.timing.UpTo(n.lasts/10)
	if n.until = n.from + n.lasts*105/100; r.edge {
		next = n.lasts
		n.until = n.from + n.lasts
	}
	*l = n
	g.count.leases.Add(1)
	g.prolongAfter(k, l, max(0, n.from+next-g.timing.Elapsed()))
}
