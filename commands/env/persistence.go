package env

import "github.com/cellserver/cellserver/transport"

// Persistence is what keeps effects, as the commands see it. A nil one keeps
// nothing. Its methods may be called from any goroutine; only Save waits for a disk.
type Persistence interface {
	// Await sees to it that everything up to position is as safe as the operator wants,
	// if that takes no longer than handing it to the kernel. Else the outcome is Pending,
	// and p is woken when there is news, upon which Await is to be called again.
	Await(position uint64, p transport.Peer) transport.Outcome
	// Position is behind everything that has had an effect so far.
	Position() uint64
	// Fault is why effects cannot be kept now; "" if they can.
	Fault() string
	// Awaited reports whether what Await called Lost is kept here, and is lost to the caller since
	// too few replicas have acknowledged it in time.
	Awaited() bool

	// Save writes a snapshot and returns when it is done. Start begins to write one
	// beside everything else and reports false if one is being written.
	Save() error
	Start() bool
	// LastSave is when the last snapshot was complete, in civil Unix seconds.
	LastSave() int64
	// Info is what INFO persistence shows.
	Info() []InfoField
}

// InfoField is a line of INFO.
type InfoField struct{ Name, Value string }

// Recording is what a store that has a journal offers beyond [Store].
type Recording interface {
	// TakePosition is the journal's position behind the effects since the last call,
	// 0 if there were none. Effects counts records of effects, ever.
	TakePosition() uint64
	Effects() uint64
	// Unsettled is how many bytes of effects that makes.
	Unsettled() int
	Refuses() bool
}
