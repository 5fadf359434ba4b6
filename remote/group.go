package remote

import (
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// group is a set of asks that are decided together: an RL.MULTI, a joint ask about several states, or the asks of a
// transaction. A lease is renewed by a group without asks. A group has exclusive use of all of its keys, and other
// asks about these keys wait until the group ends.
//
// A group decides on copies of the asks. While a write is in progress, the policy may answer an
// ask, and its caller may reuse it.
type group struct {
	*exchanger
	turn  *turn
	mu    sync.Mutex
	asks  []member
	parts []part
	memo  *work // the memory for decisions; nil before the first one: see work
	// tooLarge is the number of changes that the last decision has not made, because the value would become too large.
	tooLarge int
	now      limit.Instant // the instant of the last decision
	tries    int           // number of decisions that have lost a race
	undoes   int           // number of parts that are still being undone, plus one while undo runs
	undid    func()        // the function that runs after undo, with the lock
	todo     []func()      // functions that have to be called without the lock
	// recalls says that gather does not read keys whose values are remembered.
	recalls bool
	// own says that the store itself waits for the group. ended is called at the end of the group;
	// it may be nil.
	own   bool
	ended func()
}

// member is an ask of a group.
type member struct {
	item *item      // the item of the ask; nil after the ask was answered
	own  decide.Ask // the copy on which the group decides
	at   []int      // the index of the part of each key of the ask, in the order of eachKey
	// refundDue says that charges of the ask have to be given back: the policy has answered it with
	// an error, or an RL.MULTI was refused after a write of one of its keys.
	refundDue bool
}

// part is the state of one key of a group.
type part struct {
	key *key
	// seen is the value in the engine. v is the value on which the group decides: the value in
	// seen, unless the engine has lost writes that this server remembers. err is the error if the
	// value cannot be decided on, nil otherwise.
	seen []byte
	v    value
	err  error
	// next is the entry after the decision. changes says that next differs from the entry in v.
	next    entry.Entry
	changes bool
	stale   bool // whether the value in the engine may differ from seen
	mine    bool // whether seen is a remembered value, and was not read
	// write replaces the value old by the value put. tag is the tag of put, 0 if the write deletes
	// the key. applied says that the write was done.
	write    Write
	tag      tag
	old, put value
	applied  bool
	// charged has the charges in the write if it belongs to a joint ask that writes its states one after another: see
	// charges. Otherwise it is nil.
	charged []*decide.Ask
}

// locked calls f with the group's lock. Afterwards it calls the functions in todo without the
// lock, since they may call the engine, which may call back at once.
func (g *group) locked(f func()) {
	g.mu.Lock()
	f()
	todo := g.todo
	g.todo = nil
	g.mu.Unlock()
	for _, do := range todo {
		do()
	}
}

// later makes locked call f after it has released the lock. The lock must be held.
func (g *group) later(f func()) { g.todo = append(g.todo, f) }

// work is memory for decisions. A group has it from its first decision until its end.
type work struct {
	plan  decide.Rounds
	joint decide.Parts
}

// work returns the memory for the decisions of g.
func (g *group) work() *work {
	if g.memo == nil {
		if g.memo, _ = g.works.Get().(*work); g.memo == nil {
			g.memo = new(work)
		}
	}
	return g.memo
}

// over reports whether neither a client nor the store itself waits for an answer of the group any
// more.
func (g *group) over() bool {
	return !g.own && !slices.ContainsFunc(g.asks, func(m member) bool { return m.item != nil })
}

// gather makes a group of items, in which each distinct key is a part. It waits for the group's turn at its keys, and
// reads them, or only the keys that are not remembered if recalls is true. Afterwards it calls the function then with
// the group's lock. If no client waits any more at that time, the group ends instead. gather itself does not block.
func (x *exchanger) gather(items []*item, recalls bool, then func(g *group)) {
	g := x.group(items)
	g.recalls = recalls
	g.gatherAll(func() { then(g) })
}

// gatherAll does what gather does, for a group that has its items.
func (g *group) gatherAll(then func()) {
	numbers := map[string]int{}
	var names [][]byte
	number := func(name []byte) int {
		i, known := numbers[string(name)]
		if !known {
			i = len(names)
			numbers[string(name)], names = i, append(names, name)
		}
		return i
	}
	for n := range g.asks {
		m := &g.asks[n]
		m.at = m.at[:0]
		eachKey(&m.own, func(name []byte) { m.at = append(m.at, number(name)) })
	}
	g.gather(names, then)
}

// group returns a group of items that has no keys yet. The items belong to it from now on.
func (x *exchanger) group(items []*item) *group {
	g := &group{exchanger: x, asks: make([]member, len(items))}
	for n, it := range items {
		m := &g.asks[n]
		m.item, m.own = it, *it.ask
		m.own.Own(nil)
		m.own.Next, it.group = nil, g
	}
	return g
}

// gather waits for the turn of g at the keys called names, which become its parts, and reads them. Afterwards it calls
// the function then with the lock, or ends the group if no client waits any more. It does not block.
func (g *group) gather(names [][]byte, then func()) {
	g.turnAt(names, func(t *turn) {
		g.locked(func() {
			g.turn, g.parts = t, make([]part, len(t.keys))
			for i, k := range t.keys {
				g.parts[i].key = k
			}
			g.look(func(p *part) bool { return !g.over() && !(g.recalls && g.recall(p)) }, then)
		})
	})
}

// eachKey calls f with the key of a and the keys of its further states, or with the key of each clause if a is an
// RL.MULTI.
func eachKey(a *decide.Ask, f func(name []byte)) {
	if a.Family != decide.Several {
		if f(a.Key); a.Family == decide.Joint {
			for _, key := range a.Others {
				f(key)
			}
		}
		return
	}
	for i := range a.Clauses {
		f(a.Clauses[i].Key)
	}
}

// abandon implements owner: it removes an item from the group, because the policy answers
// it, and returns its ask, or nil if the item was answered.
func (g *group) abandon(it *item) (a *decide.Ask) {
	g.locked(func() {
		for n := range g.asks {
			if g.asks[n].item == it {
				a = g.drop(n)
			}
		}
	})
	return a
}

// drop takes the n-th ask away from the group and returns it, so that the policy can answer it.
// If the policy for one of its keys answers with an error, the charge of the ask has to be given
// back.
func (g *group) drop(n int) *decide.Ask {
	m := &g.asks[n]
	it := m.item
	if m.own.ID.Token == nil { // otherwise the token settles that: see taken
		eachKey(&m.own, func(name []byte) { m.refundDue = m.refundDue || g.policy.closed(name) })
	}
	it.stage, m.item, m.own.Program = answered, nil, nil // the copy loses the program, which belongs to the original ask
	return it.ask
}

// look reads the keys of the parts for which f returns true. Afterwards it calls the function then
// with the lock. If no client waits for an answer any more, it ends the group instead, after undo. The
// lock must be held.
func (g *group) look(f func(*part) bool, then func()) {
	left := 1
	found := func() {
		if left--; left > 0 {
			return
		}
		if g.over() {
			g.undo(g.end)
			return
		}
		then()
	}
	for i := range g.parts {
		if f(&g.parts[i]) {
			left++
			g.read(&g.parts[i], 0, found)
		}
	}
	found()
}

// read reads the key of p and stores the value in p. Afterwards it calls the function then with the
// lock. tries is the number of failed reads so far. After a failure it reads again, unless the
// group is over. If the error is NotDone, it does not read again, and the policy answers all asks.
func (g *group) read(p *part, tries int, then func()) {
	g.count.gets.Add(1)
	g.later(func() {
		g.engine.Get(p.key.full, func(raw []byte, err error) {
			g.locked(func() {
				switch {
				case err == nil:
					g.saw(p, raw)
					then()
				case isForeign(err):
					g.foreign(p)
					then()
				case g.over():
					then()
				case notDone(err):
					g.giveUp(reasonOf(err))
					then()
				default:
					g.again(tries, func() { g.read(p, tries+1, then) })
				}
			})
		})
	})
}

// again calls f with the lock after a random pause. The maximum of the pause is 1 ms, and doubles
// with each of the first six tries.
func (g *group) again(tries int, f func()) {
	g.later(func() {
		g.timing.AfterFunc(g.timing.UpTo(time.Millisecond<<min(tries, 6)), func() { g.locked(f) })
	})
}

// pause calls f, with the lock, to try again after a lost race. After the first lost races it calls
// f at once with look false, because the conflict has returned the present value. Later it calls f
// after a random pause with look true, and f has to read the value again.
func (g *group) pause(f func(look bool)) {
	if g.tries++; g.tries < patience {
		f(false)
		return
	}
	d := g.timing.UpTo(firstDelay << min(g.tries-patience, mostDoubled))
	g.later(func() {
		g.timing.AfterFunc(d, func() { g.locked(func() { f(true) }) })
	})
}

// pauseFor calls f, as pause does, to try again after a lost race at the key of p. If the value of
// p has to be read again, pauseFor reads it first.
func (g *group) pauseFor(p *part, f func()) {
	g.pause(func(look bool) {
		if look {
			g.read(p, 0, f)
			return
		}
		f()
	})
}

// recall makes the remembered value of the key of p the basis of the decision, and returns true. It returns false if the
// value has to be read, because other servers write the key or the value may have changed.
func (g *group) recall(p *part) bool {
	p.key.shard.mu.Lock()
	defer p.key.shard.mu.Unlock()
	if !g.remembered(p.key) {
		return false
	}
	p.v = p.key.memory.value
	p.seen, p.mine = p.v.raw, true
	return true
}

// saw stores raw, the value that the engine has for the key of p, in p and in the memory of the
// key. If raw was not written by a server of this package, saw calls foreign instead.
func (g *group) saw(p *part, raw []byte) {
	v, err := decode(raw)
	if err != nil {
		g.foreign(p)
		return
	}
	p.seen, p.v, p.err, p.stale, p.mine = raw, v, nil, false, false
	p.key.shard.mu.Lock()
	defer p.key.shard.mu.Unlock()
	if m := &p.key.memory; m.observe(&g.core, &v) {
		p.v = m.value
	}
	p.key.noteGone(&v)
}

// foreign marks p, whose value was not written by a server of this package, with an error. The
// value remains in the engine. The remembered values, refusals and refunds of the key are dropped.
func (g *group) foreign(p *part) {
	g.count.foreign.Add(1)
	p.seen, p.v, p.err, p.stale, p.mine = nil, value{}, limit.ErrWrongType, false, false
	p.key.shard.mu.Lock()
	p.key.memory = memory{notBefore: p.key.memory.notBefore}
	p.key.shard.mu.Unlock()
}

// instant returns the instant of a decision on the parts: the instant of the clock, or the stamp
// of a part if that is later.
func (g *group) instant() limit.Instant {
	now := g.timing.Now()
	for i := range g.parts {
		now = max(now, g.parts[i].v.stamp)
	}
	return now
}

// apply applies plan to the next entry of p. If the value would become too large, apply changes
// nothing and returns [limit.ErrTooLarge].
func (g *group) apply(p *part, plan *decide.Plan) error {
	switch plan.Action {
	case decide.Keep:
		return nil
	case decide.Store:
		next := plan.Apply(slices.Clone(p.next.Value), nil)
		if len(next) > len(p.next.Value) && len(next) > g.limits.maxValue-headerLen-mostOlder*tagLen {
			g.tooLarge++
			return limit.ErrTooLarge
		}
		p.next = entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: next}
	case decide.Remove:
		p.next = entry.Entry{}
	}
	p.changes = true
	return nil
}

// prepare prepares the write of the next entry of p, under a new tag. It returns false if there
// is nothing to write, because an absent key is to be deleted.
func (g *group) prepare(p *part) bool {
	p.tag, p.old, p.put, p.applied = 0, p.v, value{}, false
	p.write = Write{Key: p.key.full, Old: compared(p.seen)}
	if p.next.Kind == entry.None {
		return len(p.seen) > 0
	}
	p.tag = g.newTag()
	stamp := max(g.now, p.v.stamp)
	p.put = p.v.successor(p.tag, stamp, &p.next)
	p.write.New, p.write.Keep = p.put.raw, keepFor(p.next.Expiry, stamp)
	return true
}

// end calls ended and releases the keys of the group. The lock must be held.
func (g *group) end() {
	if g.ended != nil {
		g.ended()
	}
	g.count.tooLarge.Add(int64(g.tooLarge))
	if w := g.memo; w != nil {
		w.plan.Forget()
		w.joint.Forget()
		g.memo = nil
		g.works.Put(w)
	}
	g.later(g.turn.end)
}

// answer delivers the answer of the n-th ask, unless the ask was answered before.
func (g *group) answer(n int) {
	m := &g.asks[n]
	if m.item == nil {
		return
	}
	theirs, f := m.item.ask, m.item.flight
	theirs.TakeAnswer(&m.own)
	m.item.stage, m.item = answered, nil
	g.later(func() { f.answered(1) })
}

func (g *group) answerAll() {
	for n := range g.asks {
		g.answer(n)
	}
}

// giveUp lets the policy answer all asks that were not answered before, and ends the wait of the
// store itself. why is the reason that the policy counts.
func (g *group) giveUp(why reason) {
	g.own = false
	for n := range g.asks {
		if g.asks[n].item == nil {
			continue
		}
		f := g.asks[n].item.flight
		theirs := g.drop(n)
		g.later(func() {
			g.policy.answer(theirs, why)
			f.answered(1)
		})
	}
}
