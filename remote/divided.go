package remote

import (
	"slices"

	"github.com/cellserver/cellserver/decide"
)

// divided is a joint ask about states in several slots, which an engine cannot write in one step. All states are read,
// and its program is run on them at one instant. If the states that it changes are in one slot, one write ends the ask.
// Otherwise there is a write for each slot, all at the same time. If other servers were first in some slots, the
// program is run again. For the slots that were written it gets the states before the write, and for the others the
// present states.
//
// If the program then charges the same to the written states as before, these writes remain, and the other slots are
// written. Otherwise the writes are undone, and the ask starts again. So no charge exceeds a limit, and the answer is
// that of a run whose charges are all written.
//
// If this server crashes in between, the charges that it has written remain.
type divided struct {
	*group
	program charges
	left    int  // number of writes in progress, plus one while decide runs
	raced   bool // whether another server was first in one of the slots
	givenUp bool // whether one of the writes was given up
}

// divide decides the item it, a joint ask with the program p, slot by slot.
func (x *exchanger) divide(it *item, p decide.Divisible) {
	x.gather([]*item{it}, false, func(g *group) {
		a := &divided{group: g, program: charges{Divisible: p, of: make([][]*decide.Ask, len(g.parts))}}
		g.asks[0].own.Program = &a.program
		a.decide()
	})
}

// decide runs the program and writes the states that it has changed. The lock must be held.
func (x *divided) decide() {
	g, a := x.group, &x.asks[0].own
	g.now = g.instant()
	for i := range g.parts {
		p := &g.parts[i]
		if p.changes = false; p.applied {
			p.next = p.old.at(g.now)
		} else {
			p.next = p.v.at(g.now)
		}
	}
	g.decide(&g.asks[0])
	if a.Err == nil && x.differs() {
		g.count.races.Add(1)
		g.asks[0].refundDue = true
		g.undo(x.restart)
		return
	}
	slots := x.prepare()
	if a.Err != nil || len(slots) == 0 {
		g.asks[0].refundDue = a.Err != nil
		x.answer()
		return
	}
	x.left, x.raced, x.givenUp = 1, false, false
	for _, parts := range slots {
		x.left++
		g.send(parts, x.written)
	}
	x.written(done)
}

// differs reports whether the charges of the last run differ from the charges of the run before, for a state that was
// written already.
func (x *divided) differs() bool {
	for i := range x.parts {
		if p := &x.parts[i]; p.applied && !slices.EqualFunc(p.charged, x.program.of[i], sameCharge) {
			return true
		}
	}
	return false
}

// prepare prepares the writes of the states that the last run has changed and that were not written before. It returns
// the parts by slot.
func (x *divided) prepare() (slots [][]int) {
	for i := range x.parts {
		p := &x.parts[i]
		if p.applied || !p.changes || !x.group.prepare(p) {
			continue
		}
		p.charged = x.program.of[i]
		at := slices.IndexFunc(slots, func(parts []int) bool {
			return x.engine.Slot(x.parts[parts[0]].key.full) == x.engine.Slot(p.key.full)
		})
		if at < 0 {
			at, slots = len(slots), append(slots, nil)
		}
		slots[at] = append(slots[at], i)
	}
	return slots
}

// written records that one more write has ended. After the last one it answers the ask, decides again, or gives up.
func (x *divided) written(became outcome) {
	x.givenUp = x.givenUp || became == undecided
	x.raced = x.raced || became == notWritten || became == lost
	if x.left--; x.left > 0 {
		return
	}
	g := x.group
	switch {
	case !x.raced && !x.givenUp:
		x.answer()
	case x.givenUp, g.over():
		g.giveUp(late)
		g.undo(g.end)
	default:
		g.pause(func(look bool) {
			// States without a conflict may also have changed.
			g.look(func(p *part) bool { return !p.applied && (look || p.stale || !p.changes) }, x.decide)
		})
	}
}

// answer ends the group with the answer of the last run.
func (x *divided) answer() {
	x.answerAll()
	x.undo(x.end)
}

// restart reads all states and decides again, after undo.
func (x *divided) restart() {
	for i := range x.parts {
		p := &x.parts[i]
		p.applied, p.charged = false, nil
	}
	x.asks[0].refundDue = false
	x.look(func(*part) bool { return true }, x.decide)
}
