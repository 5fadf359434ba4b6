package remote

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
)

// decider decides several asks about one key at one instant, one after another. It keeps its
// buffers in the scratch of the key's shard.
type decider struct {
	*scratch
	entry   entry.Entry // the entry after the last ask
	now     limit.Instant
	changed bool
	most    int // maximum number of bytes of a value, without its header
	tooMany int // number of asks that were refused because the value would exceed most
	// bytes is the size of the key and its value in the engine, for RL.INFO.
	bytes int
	// lastChange is the index of the last ask that changed the entry, 0 if none did.
	lastChange int
	// owns says that the entry's Value is in the scratch, and not in the bytes of the engine's
	// value.
	owns bool
}

// decideAll decides the asks of batch in their order. It sets changed and lastChange.
func (j *decider) decideAll(batch []*item) {
	for i, it := range batch {
		if j.decide(it.ask) {
			j.changed, j.lastChange = true, i
		}
	}
}

// decide decides a on the entry, stores the answer in a, and reports whether the entry has
// changed.
func (j *decider) decide(a *decide.Ask) (changed bool) {
	a.ResetAnswer()
	switch {
	case a.Family == decide.Joint:
		return j.decideJoint(a)
	case j.entry.Kind == states.Joint:
		return j.decideFirst(a)
	}
	p := &j.plan
	if a.Err = p.One(&j.entry, j.now, a); a.Err != nil {
		return false
	}
	switch p.Action {
	case decide.Store:
		a.Err = j.store()
		changed = a.Err == nil
	case decide.Remove:
		j.entry, changed = entry.Entry{}, true
	case decide.Keep:
		tellBytes(a, j.bytes)
	}
	p.Forget()
	return changed
}

// decideFirst is decide for an ask about one limiter whose key has a joint state. It decides on the first part, which is
// the one that a server without an engine has under the key.
func (j *decider) decideFirst(a *decide.Ask) (changed bool) {
	whole := firstOf(a)
	if changed = j.decideJoint(&whole); !changed {
		tellBytes(a, j.bytes)
	}
	return changed
}

// firstOf returns the joint ask that makes the ask a about the first part.
func firstOf(a *decide.Ask) decide.Ask { return decide.Ask{Family: decide.Joint, Program: first{a}} }

// first is a program that makes one ask, about the first part.
type first struct{ ask *decide.Ask }

// Run implements [decide.Program].
func (p first) Run(decideOn func(*decide.Ask)) error {
	p.ask.Err = nil
	decideOn(p.ask)
	return nil
}

// Number returns 1 for every key, because a program of this type has only one part.
func (first) Number([]byte) (n uint8, ok bool) { return 1, true }

// Guessed implements [decide.Program].
func (first) Guessed() bool { return true }

// decideJoint does what decide does, for a [decide.Joint].
func (j *decider) decideJoint(a *decide.Ask) (changed bool) {
	parts := &j.parts
	defer parts.Forget()
	a.Err = states.Decide(parts, a, &j.entry, j.now, j.most)
	if j.tooMany += parts.TooLarge; a.Err != nil || !parts.Changed {
		return false
	}
	// The parts refer to the present value, which is in mine if owns is set, but never to spare.
	j.entry = states.EntryOf(&parts.State, j.spare[:0])
	if value := j.entry.Value; value != nil {
		j.mine, j.spare, j.owns = value, j.mine[:0], true
	}
	return true
}

// store applies the plan to the entry. If the value would grow beyond most, store changes nothing
// and returns [limit.ErrTooLarge].
func (j *decider) store() error {
	if !j.owns {
		j.mine = append(j.mine[:0], j.entry.Value...)
		j.entry.Value, j.owns = j.mine, true
	}
	value := j.entry.Value
	// If the value grows, Apply uses the spare memory, so that the old value remains usable.
	next := j.plan.Apply(value[:len(value):len(value)], j.spare[:0])
	if len(next) > len(value) && len(next) > j.most {
		j.tooMany++
		return limit.ErrTooLarge
	}
	if len(next) == 0 || len(value) == 0 || &next[0] != &value[0] {
		j.mine, j.spare = next, value[:0]
	}
	j.entry = entry.Entry{Kind: j.plan.Kind, Expiry: j.plan.Expiry, Value: next}
	return nil
}

// answerForeign answers the ask a about a key whose value was not written by a server of this
// package. EXISTS finds the key; any other ask gets [limit.ErrWrongType].
func answerForeign(a *decide.Ask) {
	a.Err = limit.ErrWrongType
	if a.Family == decide.Admin && a.Admin.Op == decide.Exists {
		a.Err, a.Result = nil, decide.AdminResult{Found: true}
	}
}

// tellBytes appends bytes, the size of the key and its value in the engine, to the fields of an
// RL.INFO. It does nothing for another ask, or for an RL.INFO without fields.
func tellBytes(a *decide.Ask, bytes int) {
	if a.Family == decide.Admin && a.Admin.Op == decide.Describe && len(a.Result.Fields) > 0 {
		a.Result.Fields = append(a.Result.Fields, decide.Field{Name: "bytes", Number: int64(bytes)})
	}
}

// end drops the buffers of the scratch that are larger than mostScratch.
func (j *decider) end() {
	if cap(j.mine) > mostScratch {
		j.mine = nil
	}
	if cap(j.spare) > mostScratch {
		j.spare = nil
	}
}
