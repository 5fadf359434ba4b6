package cluster

import "sync/atomic"

// counters are what the store has done since it was opened. Those of the engine's nodes are
// the engine's.
type counters struct {
	asks      atomic.Int64 // submitted
	gets      atomic.Int64 // values read
	swaps     atomic.Int64 // writes sent, those sent again too
	applied   atomic.Int64 // writes that were done
	conflicts atomic.Int64 // writes that were not, since another was first
	batched   atomic.Int64 // asks that were decided together with one before them
	fromMine  atomic.Int64 // writes decided on what was remembered, without a read

	doubts   atomic.Int64 // writes of which the engine did not say what became
	found    atomic.Int64 // own writes found in what another has written since
	unknown  atomic.Int64 // asks in writes of which nobody will ever know
	repaired atomic.Int64 // keys whose latest writes the engine had lost
	undone   atomic.Int64 // asks answered with an error whose charge was given back
	kept     atomic.Int64 // such asks whose charge could not be given back
	races    atomic.Int64 // calls over several slots that were refused after the first write
	refunded atomic.Int64 // charges of those given back though others have written since

	leases atomic.Int64 // leases taken, of which each is one exchange
	leased atomic.Int64 // calls decided by them

	cachedDenials atomic.Int64 // refusals repeated from memory
	foreign       atomic.Int64 // values that no server has written
	tooLarge      atomic.Int64 // asks refused since the value would pass its bound
}
