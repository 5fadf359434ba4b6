package cluster

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// mostBatch is how many asks about one key are decided together.
const mostBatch = 1024

const (
	// patience is how many conflicts one exchange takes before it begins to wait, a random
	// time that grows a little. Who waited for long would be last again, and so again.
	patience    = 3
	firstDelay  = 50 * time.Microsecond
	mostDoubled = 3
	// Something that failed is tried again at once, then after a time that grows.
	firstPause = time.Millisecond
	mostPauses = 4
	// mostRaces in one exchange are no accident.
	mostRaces = 4
)

// exchanger runs exchanges: one for each key that has something to do.
type exchanger struct {
	core
	table
	pool sync.Pool // of *exchange
}

// exchange decides what waits about one key, again and again until the engine has taken
// what was decided. Nothing of it blocks: each step asks the engine one thing, or sets a
// timer, and the answer runs the next step.
//
// While it is under way nobody else of this server reads or writes the key.
type exchange struct {
	*exchanger
	key *key
	// batch is what is decided together.
	batch []*item
	// basis is what it is decided on, and there what the engine has, which differs if the
	// engine has lost writes. fromMine says that both are only remembered.
	basis, there value
	fromMine     bool
	// back is a write that is to be undone before anything is decided: nobody has written
	// since.
	back *unsettledWrite

	// The write that was decided, and what makes the value of it.
	write Write
	tag   tag
	next  value
	sent  time.Duration
	// lastChange is the place in the batch of the last ask that changed anything.
	lastChange int
	tooMany    int // asks refused since the value would become too large

	doubt     bool // nobody knows what became of the write
	failures  int  // of what is asked of the engine at present
	conflicts int
	fruitless bool // the latest batch did not reach the engine
	reason    reason

	// The steps as the engine and timers call them, so that they are made once.
	looked  func(raw []byte, err error)
	swapped func(applied bool, now []byte, err error)
	resumed func()
	resume  step // what resumed does
}

// step is what an exchange does next, without the lock.
type step uint8

const (
	nothing step = iota
	look         // read the value
	send         // write it
	answer       // hand out the answers, then go on with what waits
	refuse       // have the policy answer, then go on
	goOn         // with what waits
	hand         // the key to the group that holds it
)

// start begins an exchange for a key that has just become busy.
func (x *exchanger) start(k *key) {
	e, _ := x.pool.Get().(*exchange)
	if e == nil {
		e = &exchange{exchanger: x}
		e.looked, e.swapped, e.resumed = e.onLook, e.onSwap, e.onResume
	}
	e.key = k
	e.do(goOn)
}

// do does a step and those that follow at once.
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

// release ends the exchange. The key is left as it is.
func (e *exchange) release() {
	clear(e.batch)
	*e = exchange{
		exchanger: e.exchanger, batch: e.batch[:0],
		looked: e.looked, swapped: e.swapped, resumed: e.resumed,
	}
	e.pool.Put(e)
}

// after does a step once d has passed.
func (e *exchange) after(d time.Duration, s step) step {
	if d <= 0 {
		return s
	}
	e.resume = s
	e.timing.AfterFunc(d, e.resumed)
	return nothing
}

func (e *exchange) onResume() { e.do(e.resume) }

// begin takes what waits and finds out what to decide it on.
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
		if next := e.lend(); next != nothing {
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

// lend answers what waits out of the key's lease, as far as that goes, or has that prolonged.
func (e *exchange) lend() step {
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

// fill takes what waits, up to a hold or to what a lease decides.
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

// remembered reports whether what is remembered of a key may be decided on without a look:
// nobody else writes the key, and the engine cannot have forgotten it yet.
func (x *exchanger) remembered(k *key) bool {
	m := &k.memory
	v := &m.value
	return m.known && v.raw != nil && len(m.unsettled) == 0 && m.back == nil && !m.shared(x.timing.Elapsed()) &&
		x.timing.Now().Sub(v.stamp) < keepFor(v.entry.Expiry, v.stamp)
}

// onLook goes on with what the engine has.
func (e *exchange) onLook(raw []byte, err error) {
	e.key.shard.mu.Lock()
	s := e.saw(raw, err)
	e.key.shard.mu.Unlock()
	e.do(s)
}

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

// read takes a value apart, unless it is the one that is remembered.
func (e *exchange) read(raw []byte) (value, error) {
	if m := &e.key.memory; len(raw) > 0 && sameWrite(raw, m.value.raw) {
		return m.value, nil
	}
	return decode(raw)
}

// decideOn decides on what the engine has now.
func (e *exchange) decideOn(v value) step {
	e.take(v)
	return e.decide()
}

// take makes what the engine has now what is decided on.
func (e *exchange) take(v value) {
	m := &e.key.memory
	if e.back != nil { // it was not undone
		m.noteUnsettled(&e.core, e.back)
	}
	e.there, e.basis, e.fromMine, e.failures = v, v, false, 0
	if m.observe(&e.core, &v) {
		e.basis = m.value
	}
	e.back, m.back = m.back, nil
	e.key.noteGone(&e.there)
}

// decide decides the batch at one instant, and says what is to become of the key.
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

// sort puts refunds before the others, and drops those that have been answered
// meanwhile.
func (e *exchange) sort() {
	m := &e.key.memory
	e.batch = slices.DeleteFunc(e.batch, func(it *item) bool { return it.stage == answered || it.abandoned })
	if len(m.refunds) > 0 {
		e.batch = slices.Insert(e.batch, 0, m.refunds...)
		clear(m.refunds)
		m.refunds = m.refunds[:0]
	}
}

// plan makes the write of what was decided.
func (e *exchange) plan(j *decider) {
	e.next, e.tag = value{}, 0
	e.write = Write{Key: e.key.full, Old: compared(e.there.raw)}
	if j.entry.Kind == entry.None && (e.back != nil || slices.ContainsFunc(e.batch, (*item).own)) {
		// A deleted key could come back: the write that is being undone may have been sent
		// twice, and the second may still arrive. One that has expired is no key either.
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

// onSwap goes on with what became of the write.
func (e *exchange) onSwap(applied bool, now []byte, err error) {
	e.key.shard.mu.Lock()
	s := e.wrote(applied, now, err)
	e.key.shard.mu.Unlock()
	e.do(s)
}

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

// conflict decides again, on what another has written.
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
	// What is there now will not be what is there then.
	return e.after(e.timing.UpTo(firstDelay<<min(e.conflicts-patience, mostDoubled)), look)
}

// failed goes on after the engine has not done what it was asked.
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

// refused leaves the answers to the policy.
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

// giveUp ends an exchange for which nobody waits any more. If its last write is in doubt,
// that is noted.
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

// unsettledWrite is what the policy has answered of the write under way.
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

// settled ends an exchange: the engine has what was decided, or nothing was to be written.
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
		return !it.live()
	})
	for _, it := range e.batch {
		it.stage = answered
	}
	e.count.batched.Add(int64(max(0, len(e.batch)-1)))
	return answer
}

func (e *exchange) countUndone(it *item) {
	if it.ask.Err == nil && it.ask.Decision.Allowed() {
		e.count.undone.Add(1)
		return
	}
	e.count.kept.Add(1)
}

// remember notes a refusal that can be repeated: the last one, if nothing was changed since.
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

// foreign answers a batch about a key that has a value of somebody else, which stays.
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

// isForeign reports whether the engine says that a key is no string.
func isForeign(err error) bool {
	return errors.Is(err, limit.ErrWrongType) || reasonOf(err) == "WRONGTYPE"
}

// handOut hands out the answers of the batch.
func (e *exchange) handOut() {
	for _, it := range e.batch {
		it.flight.answered(1)
	}
}

// handRefusals hands out what the policy answers in the place of the engine.
func (e *exchange) handRefusals() {
	for _, it := range e.batch {
		e.policy.answer(it.ask, e.reason)
		it.flight.answered(1)
	}
}
