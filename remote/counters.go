package remote

import "sync/atomic"

// counters counts the events of a store since it was opened. The engine has its own counters for
// its nodes.
type counters struct {
	asks      atomic.Int64 // asks submitted
	gets      atomic.Int64 // values read
	swaps     atomic.Int64 // writes sent, including repeated ones
	applied   atomic.Int64 // writes that were done
	conflicts atomic.Int64 // writes that failed because another server wrote first
	batched   atomic.Int64 // asks that were decided together with an ask before them
	fromMine  atomic.Int64 // writes decided on a remembered value, without a read

	doubts   atomic.Int64 // writes whose outcome the engine did not report
	found    atomic.Int64 // own writes that the present value shows to be done
	unknown  atomic.Int64 // asks in writes whose outcome cannot be found out; a group counts as one
	repaired atomic.Int64 // keys whose latest writes the engine had lost
	undone   atomic.Int64 // charges given back, without those in refunded
	kept     atomic.Int64 // charges that had to be given back but could not
	races    atomic.Int64 // calls over several slots whose writes had to be taken back after a lost race
	refunded atomic.Int64 // charges of groups given back without restoring the old value

	leases atomic.Int64 // leases taken
	leased atomic.Int64 // calls decided from leases

	cachedDenials atomic.Int64 // refusals repeated from memory
	foreign       atomic.Int64 // values that were not written by a server of this package
	tooLarge      atomic.Int64 // asks refused because the value would exceed its maximum size
}
