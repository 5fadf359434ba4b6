package keyspace

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
)

// apply carries out plan for key, whose place is p: it removes the key, or stores the value that
// plan has computed. It records the change, and wakes the first waiter for the key if plan has made
// room. It returns limit.ErrFull if the key is new and memory is full or the table has no room.
func (v *Handle) apply(s *shard, p *place, key []byte, plan *decide.Plan) error {
	switch {
	case plan.Action == decide.Remove:
		s.remove(p, key)
		return nil
	case plan.Kind == entry.Cell: // cells are small, and most entries are cells
		return s.put(p, key, plan.Cell(s.scratch[:0]))
	}
	delta := v.deltaOf(s, p, plan)
	value := plan.Apply(p.e.Value, v.scratch[:0])
	if cap(value) > cap(v.scratch) && cap(value) <= maxScratch && !sameMemory(value, p.e.Value) {
		v.scratch = value[:0]
	}
	if plan.Frees {
		s.freed(p.db, key)
	}
	e := entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: value}
	if delta == nil {
		return s.put(p, key, e)
	}
	s.recorder.Patch(p.db, key, e.Kind, e.Expiry, delta)
	s.replace(p, key, e)
	return nil
}

// deltaOf returns the delta that records the change by plan. plan has not yet been applied to the
// value at p. The result is nil if there is no journal, or if the whole value has to be recorded.
// The result is valid until the next call of deltaOf.
func (v *Handle) deltaOf(s *shard, p *place, plan *decide.Plan) []byte {
	if s.recorder == nil || plan.Kind != p.e.Kind || len(p.e.Value) <= wholeBound || !effect.Patchable(plan.Kind) {
		return nil
	}
	delta, ok := plan.AppendDelta(v.delta[:0], p.e.Value)
	v.delta = delta[:0]
	if !ok {
		return nil
	}
	return delta
}

// sameMemory reports whether a and b are not empty and begin at the same address.
func sameMemory(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
