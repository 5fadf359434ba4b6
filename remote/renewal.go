package remote

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// renewal takes the next lease of a key from the engine. In the same write it gives back the
// units that are left in the last lease.
type renewal struct {
	*group
	lease *lease
	// want is the number of units for the first lease, which has no earlier lease to estimate
	// from.
	want int64
	// These fields have the results of the last decision. elapsed is its time, and taken says
	// that it was written or needed no write.
	next    lease
	elapsed time.Duration
	edge    bool          // whether the lease ends together with its window
	waits   time.Duration // time to the end of the window, if that is too near for a lease; otherwise 0
	taken   bool
	stop    func() bool // stops the timer of the deadline
}

// warm counts the call a, which has to wait in the queue of k, and begins the first lease of k if
// k has become hot. The lock of the shard must be held. The caller starts k if it is not busy.
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

// fromLease answers a from the lease of k, and reports whether it did. If the lease has to be
// prolonged first, fromLease puts the item that prolongs it at the front of the queue, unless k is
// busy. The lock of the shard must be held.
func (x *exchanger) fromLease(k *key, a *decide.Ask) bool {
	l := k.lease
	if l == nil {
		return false
	}
	if a.Family == decide.Admin && (a.Admin.Op == decide.Delete || a.Admin.Op == decide.Expire) {
		l.left = 0 // no units are left, because the charge is lost together with the key
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

// prolong puts the turn that takes the next lease of k at the front of the queue, so that it
// comes before the waiting asks. The lock of the shard must be held. The caller has to start k if
// it is not busy.
func (x *exchanger) prolong(k *key) {
	if l := k.lease; !l.renewing {
		l.renewing = true
		k.memory.denial = nil
		k.queue.pushFirst(l.turn())
	}
}

// prolongAfter prolongs the lease l of k after d, unless it was prolonged or ended before.
func (x *exchanger) prolongAfter(k *key, l *lease, d time.Duration) {
	from := l.from
	x.timing.AfterFunc(d, func() {
		if x.ripe(k, l, from) {
			x.start(k)
		}
	})
}

// ripe begins to prolong l, if it is still the lease of k and began at the time from. It reports
// whether the caller has to start the key.
func (x *exchanger) ripe(k *key, l *lease, from time.Duration) bool {
	k.shard.mu.Lock()
	defer k.shard.mu.Unlock()
	// If the key was forgotten meanwhile, k.lease is nil.
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

// renew returns the item for the queue of k that prolongs the lease l. If l is a first lease, which
// has no units yet, first is the number of units to charge.
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
			if g.recall(&g.parts[0]) {
				r.decide()
				return
			}
			g.look(func(*part) bool { return true }, r.decide)
		})
	}}
	h.missing.Store(1)
	return &item{hold: h, place: &k.place}
}

// decide decides which units are given back and taken, and sends the write. If another server has
// written first, it decides again. The lock of the group must be held.
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

// reckon computes the next lease in r.next: it applies the return of unused units and the charge
// of new ones to the next entry of the key. A duration (lasts) of 0 means that there is no next
// lease.
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
	// The engine may have more units than can be charged at once, because the end of the charge
	// would be beyond the representable time.
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

// toEdge returns the duration of a lease in a window with the time left, where lasts is the
// duration without regard to the window. It avoids a lease that is shorter than shortest at the
// end of the window. If the window ends too soon for any lease, toEdge sets r.waits.
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

// apply decides a on the next entry of the key, and reports whether a was granted and applied.
func (r *renewal) apply(a *decide.Ask) bool {
	g, p := r.group, &r.parts[0]
	plan := &g.work().plan.Plan
	if plan.One(&p.next, g.now, a) != nil || !a.Decision.Allowed() {
		return false
	}
	return g.apply(p, plan) == nil
}

// mine reports whether the value in the engine still contains the charge of was, the last lease:
// the key was not deleted since, and the window is the same.
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

// ended begins the next lease after the renewal has ended. If there is none, the rest of the last
// lease is forfeited, and the engine decides the key for at least hotSpan. If a window has to end
// first, the lease is paused until then.
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
	// The random part keeps servers from renewing their leases all at the same time. A lease that
	// ends with its window is not used longer, since its units must not count in the next window.
	next := n.lasts*95/100 + g.timing.UpTo(n.lasts/10)
	if n.until = n.from + n.lasts*105/100; r.edge {
		next = n.lasts
		n.until = n.from + n.lasts
	}
	*l = n
	g.count.leases.Add(1)
	g.prolongAfter(k, l, max(0, n.from+next-g.timing.Elapsed()))
}
