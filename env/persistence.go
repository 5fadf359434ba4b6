package env

import "github.com/cellserver/cellserver/transport"

// Persistence persists effects, as commands see it. Any goroutine may call its methods. Only Save
// waits for a disk.
type Persistence interface {
	// Await makes all effects up to position as safe as the operator has configured. It returns at
	// once. If that needs more than a write to the kernel, the outcome is Pending: then p is woken
	// when the state has changed, and the caller calls Await again.
	Await(position uint64, p transport.Peer) transport.Outcome
	// Position returns the position of the journal after all effects so far.
	Position() uint64
	// Fault returns the reason why effects cannot be persisted now; "" if they can.
	Fault() string
	// Awaited reports whether replies to changes wait for acknowledgements of replicas. If it is
	// true, Fault is "" and Await has returned Lost, too few replicas have acknowledged the effects
	// in time, but the effects stand on this server.
	Awaited() bool

	// Save writes a snapshot and returns when it is complete. Start begins to write a snapshot in
	// the background. Start returns false if a snapshot is already being written.
	Save() error
	Start() bool
	// LastSave returns when the last snapshot was completed, in Unix seconds of the civil clock.
	LastSave() int64
	// Info returns the fields of INFO persistence.
	Info() []InfoField
}

// InfoField is a line "Name:Value" of INFO.
type InfoField struct{ Name, Value string }

// Recording is the part of a [Local] that a server with a journal uses. Without a journal nothing is
// recorded, and the methods return zero values. Like a store, it is for one goroutine at a time.
type Recording interface {
	// TakePosition returns the journal's position after the effects of this store since the last
	// call of TakePosition; 0 if there were none. Effects returns the number of records of effects
	// that this store has passed to the journal since the store was created.
	TakePosition() uint64
	Effects() uint64
	// Unsettled returns the size, in bytes, of the effects since the last call of TakePosition.
	Unsettled() int
	// Refuses reports whether the journal cannot accept effects now, or no more of them before the
	// next Unlock. Then a command must not run if one of its changes cannot fail, such as a
	// deletion.
	Refuses() bool
}
