package remote

import (
	"errors"
	"slices"

	"github.com/cellserver/cellserver/decide"
)

// reaching is a joint ask whose program has found, in the state of its key, the names of further states that it needs:
// see [decide.Reaching]. It gets the turn at the keys of all these states, and decides and writes them in one step.
type reaching struct{ *group }

// reaches reports whether a, which an exchange has decided on the state of its key, needs further states.
func reaches(a *decide.Ask) bool {
	return a.Family == decide.Joint && errors.Is(a.Err, decide.ErrLinked)
}

// reaching returns a group for the ask of the item it, for which reaches is true. The group was not started. The lock
// of the shard must be held.
func (x *exchanger) reaching(it *item) reaching {
	r := reaching{x.group([]*item{it})}
	r.follow()
	return r
}

// follow sets the states for the next run to those that the latest run has named.
func (r reaching) follow() {
	a := &r.asks[0].own
	a.Others = slices.Clone(a.Program.(decide.Reaching).States())
}

// start takes the keys of the states, and then decides.
func (r reaching) start() { r.gatherAll(r.decideOnAll) }

// decideOnAll decides the ask on all of its states. If the run names other states now, it starts again with these. A
// further state whose value another program has written counts as absent. The lock must be held.
func (r reaching) decideOnAll() {
	g, m := r.group, &r.asks[0]
	g.begin()
	switch a := &m.own; {
	case g.parts[0].err != nil:
		answerForeign(a)
	case !g.oneSlot():
		a.Err = decide.ErrStatesApart
	default:
		a.Err = g.decideJoint(a, m.at)
	}
	if reaches(&m.own) {
		r.follow()
		g.later(g.turn.end)
		g.later(r.start)
		return
	}
	g.conclude(r.decideOnAll)
}
