package cluster

import "time"

// engine is where the values are. No method blocks. Each calls done once, on any goroutine,
// within the engine's own time limit; err says that nobody knows what became of a swap, or
// why it was not tried.
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

// Write is one compare-and-set. An empty Old stands for no key, an empty New deletes. Keep
// is how long the engine keeps the value: the expiry inside it is what decides.
type Write struct {
	Key, Old, New []byte
	Keep          time.Duration
}
