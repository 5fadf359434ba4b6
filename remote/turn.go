package remote

import "slices"

// turn is the exclusive use of keys by a group.
type turn struct {
	hold
	*exchanger
	keys []*key
}

// turnAt puts a hold into the queue of each key called names, in one step. The names must differ.
// Asks that were submitted before are decided before the turn, and later asks wait. ready is called
// once, when the turn has begun at all keys, perhaps before turnAt returns. Until [turn.end] no
// exchange and no other group of this server reads or writes these keys.
func (x *exchanger) turnAt(names [][]byte, ready func(t *turn)) *turn {
	t := &turn{exchanger: x, keys: make([]*key, len(names))}
	t.ready = func() { ready(t) }
	t.missing.Store(int32(len(names)))
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		numbers = append(numbers, x.number(name))
	}
	order := slices.Clone(numbers)
	slices.Sort(order)
	order = slices.Compact(order)
	for _, n := range order {
		x.shards[n].mu.Lock()
	}
	idle := make([]*key, 0, len(names))
	for i, name := range names {
		k := x.find(&x.shards[numbers[i]], name)
		t.keys[i] = k
		k.queue.push(&item{hold: &t.hold, place: &k.place})
		if k.memory.denial = nil; !k.busy {
			k.busy = true
			idle = append(idle, k)
		}
	}
	for _, n := range order {
		x.shards[n].mu.Unlock()
	}
	for _, k := range idle {
		x.start(k)
	}
	return t
}

// end ends the turn: the asks that wait for the keys are decided.
func (t *turn) end() {
	for _, k := range t.keys {
		t.start(k)
	}
}
