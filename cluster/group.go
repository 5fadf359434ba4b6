package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// group is asks that are decided together: an RL.MULTI, or those of a transaction. Its turn
// has come with all of its keys, and what else is asked about them waits until it is done.
//
// It decides on copies of the asks, which are its own: the policy may answer an ask, and the
// asker use it for something else, while a write is under way.
type group struct {
	*exchanger
	turn   *turn
	mu     sync.Mutex
	asks   []member
	parts  []part
	plan   decide.Rounds
	now    limit.Instant // of the last decision
	tries  int           // decisions that lost a race
	undoes int           // parts that are still being undone
	todo   []func()      // what is to be done without the lock
	// own says that the store itself waits for what is to be done, and ended what it does
	// then.
	own   bool
	ended func()
}

// member is an ask of a group.
type member struct {
	item *item      // nil once it is answered
	own  decide.Ask // the copy that is decided
	at   []int      // the part of the key, or of each clause
	// refundDue says that the policy has answered with an error, so that what was charged is to
	// be given back.
	refundDue bool
}

// part is what a group knows of one of its keys.
type part struct {
	key *key
	// seen is what the engine has, and v what is decided on: the same, unless the engine
	// was found to have lost what this server remembers. err says that it is nothing that
	// can be decided on.
	seen []byte
	v    value
	err  error
	// next is what the key holds after the decision, and changes that this is something
	// else than before.
	next    entry.Entry
	changes bool
	stale   bool // the engine has something else than what was seen
	// write puts put in the place of old.
	write    Write
	tag      tag
	old, put value
	applied  bool
}

// locked calls f with the lock, and then does what f has left to do without it: the engine
// may answer at once.
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

func (g *group) later(f func()) { g.todo = append(g.todo, f) }

// over reports whether nobody waits for an answer any more.
func (g *group) over() bool {
	return !g.own && !slices.ContainsFunc(g.asks, func(m member) bool { return m.item != nil })
}

// gather makes a group of items. Each of the names, which differ, becomes a part.
func (x *exchanger) gather(items []*item, then func(g *group)) {
	g := &group{exchanger: x, asks: make([]member, len(items))}
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
	for n, it := range items {
		m := &g.asks[n]
		m.item, m.own = it, *it.ask
		m.own.Own(nil)
		m.own.Next, it.group = nil, g
		eachKey(&m.own, func(name []byte) { m.at = append(m.at, number(name)) })
	}
	x.turnAt(names, func(t *turn) {
		g.locked(func() {
			g.turn, g.parts = t, make([]part, len(t.keys))
			for i, k := range t.keys {
				g.parts[i].key = k
			}
			g.look(func(*part) bool { return !g.over() }, func() { then(g) })
		})
	})
}

// eachKey calls f with the key of an ask, or of each clause.
func eachKey(a *decide.Ask, f func(name []byte)) {
	if a.Family != decide.Several {
		f(a.Key)
		return
	}
	for i := range a.Clauses {
		f(a.Clauses[i].Key)
	}
}

// abandon takes an ask away, since the policy answers it.
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

// drop leaves the answer of the n-th ask, which it returns, to the policy.
func (g *group) drop(n int) *decide.Ask {
	m := &g.asks[n]
	it := m.item
	eachKey(&m.own, func(name []byte) { m.refundDue = m.refundDue || g.policy.closed(name) })
	it.stage, m.item = answered, nil
	return it.ask
}

// look reads the keys of the parts that f chooses. then is called with the lock once they are
// known, unless nobody waits for that any more.
func (g *group) look(f func(*part) bool, then func()) {
	left := 1
	found := func() {
		if left--; left > 0 {
			return
		}
		if g.over() {
			g.end()
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

// again has f happen with the lock after a while, which is longer the more often it failed.
func (g *group) again(tries int, f func()) {
	g.later(func() {
		g.timing.AfterFunc(g.timing.UpTo(time.Millisecond<<min(tries, 6)), func() { g.locked(f) })
	})
}

// pause has f happen once it is worth to try again after a race was lost: at once, since who
// lost has seen what is there now, or, if races go on, after a while. Then f is told to look
// anew.
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

// pauseFor is pause for one part, which is read anew if need be.
func (g *group) pauseFor(p *part, f func()) {
	g.pause(func(look bool) {
		if look {
			g.read(p, 0, f)
			return
		}
		f()
	})
}

// saw takes in what the engine has for a part.
func (g *group) saw(p *part, raw []byte) {
	v, err := decode(raw)
	if err != nil {
		g.foreign(p)
		return
	}
	p.seen, p.v, p.err, p.stale = raw, v, nil, false
	p.key.shard.mu.Lock()
	defer p.key.shard.mu.Unlock()
	if m := &p.key.memory; m.observe(&g.core, &v) {
		p.v = m.value
	}
	p.key.noteGone(&v)
}

// foreign says that a part has a value of somebody else, which stays.
func (g *group) foreign(p *part) {
	g.count.foreign.Add(1)
	p.seen, p.v, p.err, p.stale = nil, value{}, limit.ErrWrongType, false
	p.key.shard.mu.Lock()
	p.key.memory = memory{notBefore: p.key.memory.notBefore}
	p.key.shard.mu.Unlock()
}

// instant is the instant of a decision on parts: that of the clock, unless one of them was
// written later.
func (g *group) instant() limit.Instant {
	now := g.timing.Now()
	for i := range g.parts {
		now = max(now, g.parts[i].v.stamp)
	}
	return now
}

// apply makes what was planned about the next entry of a part the one after it.
func (g *group) apply(p *part, plan *decide.Plan) error {
	switch plan.Action {
	case decide.Keep:
		return nil
	case decide.Store:
		next := plan.Apply(slices.Clone(p.next.Value), nil)
		if len(next) > len(p.next.Value) && len(next) > g.limits.maxValue-headerLen-mostOlder*tagLen {
			g.count.tooLarge.Add(1)
			return limit.ErrTooLarge
		}
		p.next = entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: next}
	case decide.Remove:
		p.next = entry.Entry{}
	}
	p.changes = true
	return nil
}

// prepare makes the write that has a part hold its next entry. It returns false if there is
// nothing to write.
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

// end lets others have the keys.
func (g *group) end() {
	if g.ended != nil {
		g.ended()
	}
	g.later(g.turn.end)
}

// answer gives the answer of the n-th ask.
func (g *group) answer(n int) {
	m := &g.asks[n]
	if m.item == nil {
		return
	}
	theirs, f := m.item.ask, m.item.flight
	theirs.Now, theirs.Decision, theirs.Refused, theirs.Missing = m.own.Now, m.own.Decision, m.own.Refused, m.own.Missing
	theirs.Result, theirs.Err = m.own.Result, m.own.Err
	copy(theirs.Details, m.own.Details)
	m.item.stage, m.item = answered, nil
	g.later(func() { f.answered(1) })
}

func (g *group) answerAll() {
	for n := range g.asks {
		g.answer(n)
	}
}

// giveUp has the policy answer what has no answer yet.
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
