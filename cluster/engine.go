package cluster

import store "github.com/cellserver/cellserver/cluster/engine"

// engine stores the values. No method blocks. Each calls done once, on any goroutine, within the
// engine's own time limit. An err is a *store.Error, which says whether the outcome of a swap is
// unknown.
type engine interface {
	// Get reads the value of a key; raw is nil if there is none.
	Get(key []byte, done func(raw []byte, err error))
	// Swap writes w.New if the value still begins with the tag with which w.Old begins. Otherwise
	// now is the present value; nil if there is no such key.
	Swap(w Write, done func(applied bool, now []byte, err error))
	// SwapAll compares all values, then writes all or none. The keys must be in one slot. If
	// applied is false, now has the present value of each key.
	SwapAll(ws []Write, done func(applied bool, now [][]byte, err error))
	// Slot returns the number of the key's hash slot; with a single node it is equal for all keys.
	Slot(key []byte) int
}

// Write is one compare-and-set.
type Write = store.Write
