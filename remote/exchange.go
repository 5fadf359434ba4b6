package remote

import (
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/entry"
)

// mostBatch is the maximum number of asks about one key that are decided together.
const mostBatch = 1024

const (
	// patience is the number of conflicts after which an exchange waits before it tries again. It
	// waits for a random time that grows only a little, up to firstDelay<<mostDoubled: an
	// exchange that waited for long would lose the next race as well.
	patience    = 3
	firstDelay  = 50 * time.Microsecond
	mostDoubled = 3
	// A failed request is repeated at once, and then after a pause that doubles, from firstPause
	// up to firstPause<<mostPauses.
	firstPause = time.Millisecond
	mostPauses = 4
	// A key counts as hot after more than mostRaces conflicts over one batch.
	mostRaces = 4
)

// exchanger runs exchanges. For each key with waiting asks, one exchange runs at a time.
type exchanger struct {
	core
	table
	pool  sync.Pool // unused values of type *exchange
	works sync.Pool // unused values of type *work
}

// exchange decides the waiting asks about one key, in batches, until no more wait or a group takes
// the key over. It does not block: each step sends one request to the engine or starts a timer, and
// the reply or the timer runs the next step.
//
// While an exchange is running, no other exchange and no group of this server reads or writes the
// key.
type exchange struct {
	*exchanger
	key *key
	// batch has the asks that are decided together.
	batch []*item
	// basis is the value on which the batch is decided. there is the value in the engine, which
	// differs from basis if the engine has lost writes. fromMine says that both are remembered, and
	// were not read for this batch.
	basis, there value
	fromMine     bool
	// back is the latest write of the key if it has to be undone before the batch is decided,
	// otherwise nil.
	back *unsettledWrite

	// These fields have the write that was decided, its tag, the value that it stores, and the
	// time at which it was sent first.
	write Write
	tag   tag
	next  value
	sent  time.Duration
	// lastChange is the index in the batch of the last ask that changed the entry.
	lastChange int
	tooMany    int // number of asks that were refused because the value would exceed its maximum size
	// further has the asks of the batch that are about further keys.
	further []interface{ start() }

	doubt     bool // whether the outcome of the write is unknown
	failures  int  // number of failures of the present request to the engine
	conflicts int
	fruitless bool // whether the latest batch has ended undecided
	reason    reason

	// These fields have the callbacks for the engine and for timers, which are allocated once.
	looked  func(raw []byte, err error)
	swapped func(applied bool, now []byte, err error)
	resumed func()
	resume  step // the step that resumed runs
}

// step is the next step of an exchange. The steps run without the lock of the shard.
type step uint8

const (
	// nothing is no step. A pending request or timer runs the next step, or the exchange has ended.
	nothing step = iota
	look         // look reads the value from the engine.
	send         // send sends the write to the engine.
	answer       // answer delivers the answers and continues with the waiting asks.
	refuse       // refuse lets the policy answer the batch and continues with the waiting asks.
	goOn         // goOn continues with the waiting asks.
	hand         // hand passes the key to the group whose hold is first in the queue.
)

// start runs an exchange for the key k. The caller has marked k as busy, or ends the turn of a
// group at k.
func (x *exchanger) start(k *key) {
	e, _ := x.pool.Get().(*exchange)
	if e == nil {
		e = &exchange{exchanger: x}
		e.looked, e.swapped, e.resumed = e.onLook, e.onSwap, e.onResume
	}
	e.key = k
	e.do(goOn)
}

// do runs the step s, and all following steps that need not wait for the engine or a timer.
func (e *exchange) do(s step) {
	for {
		switch s {
		case nothing:
			return
		case look:
			e.count.gets.Add(1)
			e.engine.Get(e.key.full, e.looked)
			return
		case send:
			e.count.swaps.Add(1)
			e.engine.Swap(e.write, e.swapped)
			return
		case answer:
			e.handOut()
			s = goOn
		case refuse:
			e.handRefusals()
			s = goOn
		case hand:
			h := e.batch[0].hold
			e.release()
			h.arrived()
			return
		case goOn:
			s = e.begin()
		}
	}
}

// release ends the exchange and returns it to the pool. It does not change the key.
func (e *exchange) release() {
	clear(e.batch)
	*e = exchange{
		exchanger: e.exchanger, batch: e.batch[:0], further: e.further,
		looked: e.looked, swapped: e.swapped, resumed: e.resumed,
	}
	e.pool.Put(e)
}

// after returns s if d is 0 or negative. Otherwise it starts a timer that runs s after d, and
// returns the step nothing.
func (e *exchange) after(d time.Duration, s step) step {
	if d <= 0 {
		return s
	}
	e.resume = s
	e.timing.AfterFunc(d, e.resumed)
	return nothing
}

func (e *exchange) onResume() { e.do(e.resume) }

// begin takes the waiting asks of the key and determines the value on which to decide them. It
// returns the next step. If no asks wait, and no refund is due or the latest batch has ended
// undecided, begin marks the key as idle and ends the exchange.
func (e *exchange) begin() step {
	k := e.key
	k.shard.mu.Lock()
	defer k.shard.mu.Unlock()
	m := &k.memory
	clear(e.batch)
	e.batch = e.batch[:0]
	e.doubt, e.failures, e.conflicts, e.back = false, 0, 0, nil
	first := k.queue.first
	switch {
	case first == nil && (e.fruitless || !m.refundsDue()):
		k.shard.rest(k)
		e.release()
		return nothing
	case first != nil && first.hold != nil:
		k.queue.remove(first)
		e.batch = append(e.batch, first)
		return hand
	}
	if k.lease != nil {
		if next := e.grantLease(); next != nothing {
			return next
		}
	}
	if wait := m.notBefore - e.timing.Elapsed(); wait > 0 {
		return e.after(wait, goOn)
	}
	e.fruitless = false
	e.fill()
	e.fromMine = len(e.batch) == 1 && len(m.refunds) == 0 && e.remembered(k)
	if !e.fromMine {
		return look
	}
	e.basis, e.there = m.value, m.value
	return e.decide()
}

// grantLease answers waiting asks from the key's lease until the lease cannot answer an ask. If
// grantLease has answered none, and the lease has to be prolonged first, it puts the item that
// prolongs the lease at the front of the queue. It returns the step nothing if the engine has to
// decide the asks.
func (e *exchange) grantLease() step {
	l, q := e.key.lease, &e.key.queue
	now, elapsed := e.timing.Now(), e.timing.Elapsed()
	for it := q.first; it != nil && it.hold == nil && l.decide(it.ask, elapsed, now); it = q.first {
		q.remove(it)
		it.stage = answered
		e.batch = append(e.batch, it)
	}
	if len(e.batch) > 0 {
		e.count.leased.Add(int64(len(e.batch)))
		return answer
	}
	if it := q.first; it != nil && it.hold == nil && l.due(it.ask, elapsed) {
		l.renewing = true
		q.pushFirst(l.turn())
		return goOn
	}
	return nothing
}

// fill takes waiting asks into the batch, up to mostBatch. It stops before a hold. It also stops
// before an ask that the lease of the key could answer, unless that ask is the first of the batch.
func (e *exchange) fill() {
	q := &e.key.queue
	for it := q.first; it != nil && it.hold == nil && len(e.batch) < mostBatch; it = q.first {
		if l := e.key.lease; l != nil && len(e.batch) > 0 && l.fits(it.ask) {
			return
		}
		q.remove(it)
		it.stage = batched
		e.batch = append(e.batch, it)
	}
}

// remembered reports whether an ask may be decided on the remembered value of k without a read.
// That is so if no other server writes the key, no write is unsettled, and the engine cannot have
// expired the value yet.
func (x *exchanger) remembered(k *key) bool {
	m := &k.memory
	v := &m.value
	return m.known && v.raw != nil && len(m.unsettled) == 0 && m.back == nil && !m.shared(x.timing.Elapsed()) &&
		x.timing.Now().Sub(v.stamp) < keepFor(v.entry.Expiry, v.stamp)
}

// onLook continues the exchange after a read: raw is the value in the engine.
func (e *exchange) onLook(raw []byte, err error) {
	e.key.shard.mu.Lock()
	s := e.saw(raw, err)
	e.key.shard.mu.Unlock()
	e.do(s)
}

// saw returns the step that follows a read, which has returned raw or err. The caller holds the
// lock of the shard.
func (e *exchange) saw(raw []byte, err error) step {
	if err != nil && !isForeign(err) {
		return e.failed(err, look)
	}
	var v value
	if err == nil {
		v, err = e.read(raw)
	}
	if err != nil {
		return e.foreign()
	}
	return e.decideOn(v)
}

// read decodes raw, the value in the engine. If raw comes from the remembered write, read returns
// the remembered value instead.
func (e *exchange) read(raw []byte) (value, error) {
	if m := &e.key.memory; len(raw) > 0 && sameWrite(raw, m.value.raw) {
		return m.value, nil
	}
	return decode(raw)
}

func (e *exchange) decideOn(v value) step {
	e.take(v)
	return e.decide()
}

// take makes v, the present value in the engine, the basis of the next decision. If v shows that
// the engine has lost writes, the remembered value becomes the basis. take also determines the
// outcome of unsettled writes.
func (e *exchange) take(v value) {
	m := &e.key.memory
	if e.back != nil { // the write that has to be undone is still there
		m.noteUnsettled(&e.core, e.back)
	}
	e.there, e.basis, e.fromMine, e.failures = v, v, false, 0
	if m.observe(&e.core, &v) {
		e.basis = m.value
	}
	e.back, m.back = m.back, nil
	e.key.noteGone(&e.there)
}

// decide decides the batch at one instant, and returns the step that follows: send if a change has
// to be written, look if none has and the basis was only remembered, goOn if there was nothing to
// decide, and otherwise answer.
func (e *exchange) decide() step {
	e.sort()
	if len(e.batch) == 0 && e.back == nil {
		return goOn
	}
	was := &e.basis
	if e.back != nil {
		was = &e.back.old
	}
	j := decider{scratch: &e.key.shard.scratch, now: max(e.timing.Now(), e.basis.stamp), changed: e.back != nil}
	j.entry = was.at(j.now)
	j.most = e.limits.maxValue - headerLen - mostOlder*tagLen
	j.bytes = len(e.key.full) + len(e.basis.raw)
	j.decideAll(e.batch)
	j.end()
	e.lastChange, e.tooMany = j.lastChange, j.tooMany
	switch {
	case j.changed && (j.entry.Kind != entry.None || len(e.there.raw) > 0):
		e.plan(&j)
		return send
	case e.fromMine:
		e.fromMine = false
		return look
	}
	return e.settled(false)
}

// sort puts the refunds that are due before the asks of the batch, and removes asks that were
// answered meanwhile.
func (e *exchange) sort() {
	m := &e.key.memory
	e.batch = slices.DeleteFunc(e.batch, func(it *item) bool { return it.stage == answered || it.abandoned })
	if len(m.refunds) > 0 {
		e.batch = slices.Insert(e.batch, 0, m.refunds...)
		clear(m.refunds)
		m.refunds = m.refunds[:0]
	}
}

// plan prepares the write of the entry that j has decided, under a new tag, and marks the items
// of the batch as writing. An entry of kind [entry.None] deletes the key.
func (e *exchange) plan(j *decider) {
	e.next, e.tag = value{}, 0
	e.write = Write{Key: e.key.full, Old: compared(e.there.raw)}
	if j.entry.Kind == entry.None && (e.back != nil || slices.ContainsFunc(e.batch, (*item).own)) {
		// Store an expired entry rather than delete the key: the write that is being undone may
		// have been sent twice, and its second copy may still arrive and write to an absent key. An
		// expired entry is like an absent key for decisions.
		j.entry = entry.Entry{Kind: entry.Cell, Expiry: j.now}
	}
	if j.entry.Kind != entry.None {
		e.tag = e.newTag()
		e.next = e.basis.successor(e.tag, j.now, &j.entry)
		e.write.New, e.write.Keep = e.next.raw, keepFor(j.entry.Expiry, j.now)
	}
	if e.fromMine {
		e.count.fromMine.Add(1)
	}
	for _, it := range e.batch {
		it.stage = writing
	}
	e.key.basis = &e.basis
	e.doubt, e.failures, e.sent = false, 0, e.timing.Elapsed()
}

// onSwap continues the exchange after the write was sent: applied says that it was done, and
// otherwise now is the present value in the engine.
func (e *exchange) onSwap(applied bool, now []byte, err error) {
	e.key.shard.mu.Lock()
	s := e.wrote(applied, now, err)
	e.key.shard.mu.Unlock()
	e.do(s)
}

// wrote returns the step that follows a write, which has returned applied and now, or err. If the
// write was not applied, wrote determines whether an earlier copy of it was done. The caller
// holds the lock of the shard.
func (e *exchange) wrote(applied bool, now []byte, err error) step {
	switch {
	case err != nil && !isForeign(err):
		if !e.doubt && !notDone(err) {
			e.doubt = true
			e.count.doubts.Add(1)
		}
		return e.failed(err, send)
	case applied:
		e.count.applied.Add(1)
		return e.settled(true)
	}
	var v value
	if err == nil {
		v, err = e.read(now)
	}
	if err != nil {
		return e.foreign()
	}
	outcome := outcomeOf(e.tag, &e.there, &v)
	switch {
	case outcome == done && (e.tag != 0 || e.doubt):
		e.count.found.Add(1)
		e.key.memory.countOthers(&e.core, &v)
		e.next = v
		return e.settled(true)
	case outcome == lost && e.doubt:
		e.count.unknown.Add(int64(len(e.batch)))
	}
	return e.conflict(v)
}

// conflict continues after another server has written v first: the batch is decided again on v.
// After several conflicts it waits and reads the value again.
func (e *exchange) conflict(v value) step {
	e.count.conflicts.Add(1)
	e.conflicts++
	e.key.raced = e.key.raced || e.conflicts > mostRaces
	e.doubt = false
	for _, it := range e.batch {
		if it.stage == writing {
			it.stage = batched
		}
	}
	e.take(v)
	if e.conflicts < patience {
		return e.decide()
	}
	// The value is read again after the pause, because another server may have changed it by then.
	return e.after(e.timing.UpTo(firstDelay<<min(e.conflicts-patience, mostDoubled)), look)
}

// failed returns the step that follows a failed request to the engine. again is the step that
// repeats the request. If the engine has certainly changed nothing, the policy answers. If no
// client waits any more, the batch is given up.
func (e *exchange) failed(err error, again step) step {
	e.reason = reasonOf(err)
	switch {
	case notDone(err) && !e.doubt:
		return e.refused()
	case !slices.ContainsFunc(e.batch, (*item).live):
		return e.giveUp()
	}
	e.failures++
	if e.failures == 1 {
		return again
	}
	return e.after(firstPause<<min(e.failures-2, mostPauses), again)
}

// refused ends the batch undecided, and lets the policy answer the asks for which clients wait.
// Refunds in the batch remain due.
func (e *exchange) refused() step {
	m := &e.key.memory
	e.batch = slices.DeleteFunc(e.batch, func(it *item) bool {
		if it.flight == nil {
			m.refunds = append(m.refunds, it)
		}
		return !it.live()
	})
	for _, it := range e.batch {
		it.stage = answered
	}
	if e.back != nil {
		m.noteUnsettled(&e.core, e.back)
	}
	e.fruitless = true
	return refuse
}

// giveUp ends a batch for which no client waits any more. If the outcome of its last write is in
// doubt, giveUp remembers the write as unsettled. Otherwise the refunds in the batch remain due.
func (e *exchange) giveUp() step {
	m := &e.key.memory
	if e.back != nil {
		m.noteUnsettled(&e.core, e.back)
	}
	d := e.unsettledWrite()
	if e.doubt {
		m.noteUnsettled(&e.core, d)
	} else {
		m.refunds = append(m.refunds, d.again...)
	}
	e.fruitless = true
	return goOn
}

// unsettledWrite returns a description of the present write, with its internal asks, and with the
// asks that the policy has answered and whose charges have to be given back.
func (e *exchange) unsettledWrite() *unsettledWrite {
	d := &unsettledWrite{tag: e.tag, old: e.there, whole: e.back == nil}
	for _, it := range e.batch {
		switch {
		case it.flight == nil:
			d.again = append(d.again, it)
		case it.refundDue:
			d.items = append(d.items, it)
			continue
		}
		d.whole = false
	}
	return d
}

// settled ends the batch and returns the step answer. If written is true, the engine has stored the
// decided value; otherwise nothing had to be written. Charges of asks that the policy has answered
// with an error meanwhile are remembered, to be given back.
func (e *exchange) settled(written bool) step {
	m := &e.key.memory
	d := e.unsettledWrite()
	if written {
		m.wrote(&e.core, &e.next, e.timing.Elapsed()-e.sent)
		e.key.noteGone(&e.next)
		d.sure = true
		if len(d.items) > 0 {
			d.again = nil
			m.noteUnsettled(&e.core, d)
		}
	}
	if e.back != nil {
		e.count.undone.Add(int64(len(e.back.items)))
	}
	e.count.tooLarge.Add(int64(e.tooMany))
	e.remember()
	e.batch = slices.DeleteFunc(e.batch, func(it *item) bool {
		if it.flight == nil {
			e.countUndone(it)
		}
		switch {
		case !it.live():
		case it.ask.Linked && it.ask.Err == nil:
			e.further = append(e.further, e.settling(it))
		case reaches(it.ask):
			e.further = append(e.further, e.reaching(it))
		default:
			return false
		}
		return true
	})
	for _, it := range e.batch {
		it.stage = answered
	}
	e.count.batched.Add(int64(max(0, len(e.batch)-1)))
	return answer
}

// remember remembers the last refusal in the batch that can be repeated, if no later ask has
// changed the entry and no waiting ask may free units.
func (e *exchange) remember() {
	k := e.key
	if e.limits.denials <= 0 || k.queue.freeing > 0 {
		return
	}
	for i := len(e.batch) - 1; i >= e.lastChange; i-- {
		if d := denialOf(e.batch[i].ask, e.timing.Now(), e.limits.denials); d != nil {
			k.memory.denial = d
			return
		}
	}
}

// foreign answers the batch about a key whose value was not written by a server of this package.
// The value stays in the engine. The remembered values, refusals and refunds of the key are
// dropped.
func (e *exchange) foreign() step {
	e.count.foreign.Add(1)
	if e.doubt {
		e.count.unknown.Add(int64(len(e.batch)))
	}
	e.key.memory = memory{notBefore: e.key.memory.notBefore}
	e.batch = slices.DeleteFunc(e.batch, func(it *item) bool { return !it.live() })
	for _, it := range e.batch {
		it.stage = answered
		answerForeign(it.ask)
	}
	return answer
}

func (e *exchange) handOut() {
	for _, it := range e.batch {
		it.flight.answered(1)
	}
	for _, f := range e.further {
		f.start()
	}
	clear(e.further)
	e.further = e.further[:0]
}

func (e *exchange) handRefusals() {
	for _, it := range e.batch {
		e.policy.answer(it.ask, e.reason)
		it.flight.answered(1)
	}
}
