// Package concurrency limits how many members may hold a lease at the same time. It is a semaphore
// for requests in flight. The caller names the members. Leases expire, so that a member that has
// crashed does not keep its place.
//
// [Decide] decides a [Call] on the bytes that are stored under a key, and writes the result to a
// [Plan]. [Plan.Apply] returns the bytes to store. Acquiring is idempotent: a member that holds a
// lease is not refused (unless the limit is 0), and its call only refreshes the lease. The package
// reads no clock and does no I/O. Only Apply allocates memory, if the value needs more.
//
// A lease is live until its expiry, exclusive. Calls that write drop expired leases, in a large set
// only a few at a time. Until they are dropped, these take memory but do not count.
//
// # Places
//
// A member usually has one place. A call may ask for several, which the member gets and loses
// together: it has the number that its last Acquire with a number has asked for. A Renew, and an
// Acquire without a number, keep it. For example with a limit of 4:
//
//	0s  a takes 3, for 10 s   1 of 4 is left
//	1s  b takes 2             refused: 3 and 2 are more than 4. It may pass after 9 s
//	3s  a takes 2, for 20 s   2 are left
//	4s  b takes 2             none is left
//	5s  a takes 3             refused. It may pass in 9 s, when the lease of b ends
//
// A member that asks for no more than it has is not refused, even if the limit was lowered.
//
// A set with such a member is stored in the mode Places, and takes 4 bytes more for each member as a
// list, and 12 as trees. When all members have one place again, a list gets the mode Leases with the
// next call that writes. Trees get it after as many calls as they have members, because all members
// are copied then.
//
// # Memory and work
//
// Up to 64 members are stored as a list in the order of their expiries. It takes 2 bytes, and 10
// for each member beside its name. A call reads the list a few times and writes it once.
//
// A larger set is stored with two balanced trees over its members, one by expiry and one by name.
// It takes 32 bytes, and 40 for each member beside its name. Spare memory is up to half of that
// while the set grows. While the set shrinks, the value takes up to four times what it needs. Every
// call examines O(log n) members and changes the value in place. The value gets a new layout when
// its spare memory is used up or when most of it is unused. Amortized, that copies a few bytes for
// each byte of a name that was added. No choice of names and leases makes the trees degenerate. At
// the default maximum of 100,000 members, names of 36 bytes take 7.6 to 11.4 MB.
package concurrency
