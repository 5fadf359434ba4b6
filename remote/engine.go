package remote

import store "github.com/cellserver/cellserver/remote/engine"

// engine stores the values. No method blocks. Each method except Slot calls done once, on any
// goroutine, in bounded time. An err is a *store.Error, which says whether the outcome of a swap is
// unknown.
type engine interface {
	// Get reads the value of a key. raw is nil if the key is absent.
	Get(key []byte, done func(raw []byte, err error))
	// Swap writes w.New if the value still begins with w.Old, the bytes of the old value that are
	// compared. An empty w.Old stands for an absent key. If the value was not written, applied is
	// false, and now is the present value, nil if the key is absent.
	Swap(w Write, done func(applied bool, now []byte, err error))
	// SwapAll compares the values of all keys in ws, then does all writes or none. The keys must be
	// in one slot. If applied is false, now has the present value of each key in ws, in their
	// order.
	SwapAll(ws []Write, done func(applied bool, now [][]byte, err error))
	// Slot returns the number of the key's hash slot. If the engine is known to be a single node,
	// all keys have the same number.
	Slot(key []byte) int
}

// Write is one compare-and-set, for a key of the engine.
type Write = store.Write
