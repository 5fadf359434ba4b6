package cluster

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// decider decides asks about one key one after another, at one instant.
type decider struct {
	*scratch
	entry   entry.Entry // as it is after the latest
	now     limit.Instant
	changed bool
	most    int // bytes that a value may have, without its head
	tooMany int // asks that were refused since the value would have more
	// bytes is what the value of the key takes in the engine, for RL.INFO.
	bytes int
	// lastChange is the place of the last ask that changed the entry.
	lastChange int
	// owns says that the entry's Value is the scratch's and not the engine's.
	owns bool
}

// decideAll decides the asks of a batch in its order.
func (j *decider) decideAll(batch []*item) {
	for i, it := range batch {
		if j.decide(it.ask) {
			j.changed, j.lastChange = true, i
		}
	}
}

// decide decides a, and reports whether it changed the entry.
func (j *decider) decide(a *decide.Ask) (changed bool) {
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

// store makes the entry what the plan says, unless it would become too large.
func (j *decider) store() error {
	if !j.owns {
		j.mine = append(j.mine[:0], j.entry.Value...)
		j.entry.Value, j.owns = j.mine, true
	}
	value := j.entry.Value
	// Where it grows it does so in other memory, so that it can be left as it is.
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

// answerForeign answers an ask about a key that has a value of somebody else.
func answerForeign(a *decide.Ask) {
	a.Err = limit.ErrWrongType
	if a.Family == decide.Admin && a.Admin.Op == decide.Exists {
		a.Err, a.Result = nil, decide.AdminResult{Found: true}
	}
}

// tellBytes adds to what RL.INFO says how many bytes the value takes in the engine.
func tellBytes(a *decide.Ask, bytes int) {
	if a.Family == decide.Admin && a.Admin.Op == decide.Describe && len(a.Result.Fields) > 0 {
		a.Result.Fields = append(a.Result.Fields, decide.Field{Name: "bytes", Number: int64(bytes)})
	}
}

// end gives back what is large of the scratch.
func (j *decider) end() {
	if cap(j.mine) > mostScratch {
		j.mine = nil
	}
	if cap(j.spare) > mostScratch {
		j.spare = nil
	}
}
