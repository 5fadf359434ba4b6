package env

import "github.com/cellserver/cellserver/transport"

// Persistence persists effects, as the commands see it. nil persists nothing. Any goroutine may
// call its methods. Only Save waits for a disk.
type Persistence interface {
	// Await makes everything up to position as safe as the operator has configured, if that needs
	// no more than a write to the kernel. Otherwise it returns Pending, and p is woken when the
	// state has changed, to call Await again.
	Await(position uint64, p transport.Peer) transport.Outcome
	// Position returns the position after all effects so far.
	Position() uint64
	// Fault returns why effects cannot be persisted now; "" if they can.
	Fault() string
	// Awaited reports whether effects for which Await returned Lost are persisted here, and are
	// lost only for the caller: too few replicas have acknowledged them in time.
	Awaited() bool

	// Save writes a snapshot and returns when it is complete. Start begins to write one in the
	// background, and returns false if one is already being written.
	Save() error
	Start() bool
	// LastSave returns when the last snapshot was complete, in civil Unix seconds.
	LastSave() int64
	// Info returns the fields of INFO persistence.
	Info() []InfoField
}

// InfoField is a line of INFO.
type InfoField struct{ Name, Value string }

// Recording is what a store with a journal offers in addition to [Store].
type Recording interface {
	// TakePosition returns the journal's position after the effects since its last call, 0 if there
	// were none. Effects returns the number of records of effects since the start.
	TakePosition() uint64
	Effects() uint64
	// Unsettled returns how many bytes the effects since the last TakePosition take.
	Unsettled() int
	Refuses() bool
}
