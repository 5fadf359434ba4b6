package cluster

import store "github.com/cellserver/cellserver/cluster/engine"

// engine is where the values are. No method blocks. Each calls done once, on any goroutine,
// within the engine's own time limit. An err is a *store.Error, which says whether nobody
// knows what became of a swap.
type engine interface {
	// Get reads the value of a key; raw is nil if there is none.
	Get(key []byte, done func(raw []byte, err error))
	// Swap writes w.New if the value still begins with the tag that w.Old begins with. now
	// is what is there if it does not; nil if there is no such key.
	Swap(w Write, done func(applied bool, now []byte, err error))
	// SwapAll compares all, then writes all or none. The keys are of one slot. now has
	// what is there of each, if applied is false.
	SwapAll(ws []Write, done func(applied bool, now [][]byte, err error))
	// Slot is the number of the key's hash slot; equal for all keys where there is one node.
	Slot(key []byte) int
}

// Write is one compare-and-set.
type Write = store.Write
