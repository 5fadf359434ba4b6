package remote

import "sync/atomic"

// counters counts the events of a store since it was opened. The engine has its own counters for
// its nodes.
type counters struct {
	asks      atomic.Int64 // number of asks that were submitted
	gets      atomic.Int64 // number of values that were read
	swaps     atomic.Int64 // number of writes that were sent, including repeated ones
	applied   atomic.Int64 // number of writes that were done
	conflicts atomic.Int64 // number of writes that failed because another server wrote first
	batched   atomic.Int64 // number of asks that were decided together with an ask before them
	fromMine  atomic.Int64 // number of writes that were decided on a remembered value, without a read

	doubts   atomic.Int64 // number of writes whose outcome the engine did not report
	found    atomic.Int64 // number of own writes that the present value shows to be done
	unknown  atomic.Int64 // number of asks in writes whose outcome cannot be found out; a group counts as one
	repaired atomic.Int64 // number of keys whose latest writes the engine had lost
	undone   atomic.Int64 // number of charges that were given back, without those in refunded
	kept     atomic.Int64 // number of charges that had to be given back but could not
	races    atomic.Int64 // number of calls over several slots whose writes had to be taken back after a lost race
	refunded atomic.Int64 // number of charges of groups that were given back without restoring the old value

	leases atomic.Int64 // number of leases that were taken
	leased atomic.Int64 // number of calls that were decided from leases

	cachedDenials atomic.Int64 // number of refusals that were repeated from memory
	foreign       atomic.Int64 // number of values that no server of this package has written
	tooLarge      atomic.Int64 // number of asks that were refused because the value would exceed its maximum size
}
