package command

// KeyRef names a key and its database.
type KeyRef struct {
	DB  int
	Key []byte
}

// BlockedPops are the queues of those who wait for elements of lists and sorted sets, in the
// order of arrival for each key.
type BlockedPops interface {
	// EnqueuePop puts a waiter at the end of the queues of keys, which are locked and stay
	// what they are. DequeuePop takes it out of all, once, while nothing is locked.
	EnqueuePop(db int, keys [][]byte, w PopWait) (ticket any)
	DequeuePop(ticket any)
	// AppendMoves adds to refs the keys that waiters under them would move elements to.
	AppendMoves(refs []KeyRef) []KeyRef
	// Serving says that Serve will be called before what is locked is released. Serve offers
	// the keys that have changed since, and those of MarkReady, to their waiters.
	Serving()
	MarkReady(db int, key []byte)
	Serve(f func(owner any, db int, key []byte) Served)
	// Holds reports whether a key may be used by f.
	IsLocked(key []byte) bool
}

// PopWait is somebody who waits for elements.
type PopWait struct {
	// SortedSet says that it wants those of sorted sets; lists otherwise.
	SortedSet bool
	// Dest is the key that it moves an element to, nil if it does not.
	Dest  []byte
	Owner any
	// Ready is called with locks held when a key has changed and nobody serves it now: it
	// may only start something.
	Ready func(db int, key string)
}

// Served is what came of an attempt to serve a waiter.
type Served uint8

const (
	// ServedYes: it has been answered.
	ServedYes Served = iota
	// ServedGone: its wait is over for another reason.
	ServedGone
	// ServedLater: what it needs is not held.
	ServedLater
)
