package cluster

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// decider decides asks about one key one after another, at one instant.
type decider struct {
	*scratch
	entry   entry.Entry // as the last ask has left it
	now     limit.Instant
	changed bool
	most    int // maximum number of bytes of a value without its head
	tooMany int // asks refused because the value would be larger
	// bytes is the size of the key's value in the engine, for RL.INFO.
	bytes int
	// lastChange is the index of the last ask that changed the entry.
	lastChange int
	// owns says that the entry's Value lies in the scratch and not in the engine's bytes.
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

// store applies the plan to the entry, unless the value would become too large.
func (j *decider) store() error {
	if !j.owns {
		j.mine = append(j.mine[:0], j.entry.Value...)
		j.entry.Value, j.owns = j.mine, true
	}
	value := j.entry.Value
	// If the value grows, Apply uses other memory, so that the old value remains usable.
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

// answerForeign answers an ask about a key whose value no server has written.
func answerForeign(a *decide.Ask) {
	a.Err = limit.ErrWrongType
	if a.Family == decide.Admin && a.Admin.Op == decide.Exists {
		a.Err, a.Result = nil, decide.AdminResult{Found: true}
	}
}

// tellBytes adds the size of the value in the engine to the fields of RL.INFO.
func tellBytes(a *decide.Ask, bytes int) {
	if a.Family == decide.Admin && a.Admin.Op == decide.Describe && len(a.Result.Fields) > 0 {
		a.Result.Fields = append(a.Result.Fields, decide.Field{Name: "bytes", Number: int64(bytes)})
	}
}

// end frees large buffers of the scratch.
func (j *decider) end() {
	if cap(j.mine) > mostScratch {
		j.mine = nil
	}
	if cap(j.spare) > mostScratch {
		j.spare = nil
	}
}
