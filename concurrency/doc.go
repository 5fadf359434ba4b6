// Package concurrency limits how many members may hold a lease at the same time. It is a semaphore
// for requests in flight. The caller names the members, and leases expire, so that a member that
// crashed frees its place.
//
// [Decide] decides a [Call] on the bytes that are stored under a key and fills a [Plan], whose
// Apply makes the bytes to store next. Naming the member makes acquiring idempotent: a member that
// holds a lease is not refused (unless the limit is 0), the call only refreshes its lease. Nothing
// here reads a clock, does I/O or allocates, except that Apply allocates the memory that a value
// lacks.
//
// A lease is live until its expiry, exclusive. Calls that write drop expired leases, a few at a
// time; until then they take memory but do not count.
//
// # Memory and work
//
// Up to 64 members are stored as a list in the order of their expiries: 2 bytes,
// and 10 beside each name. A call reads the list a few times and writes it once.
//
// A larger set is stored with two balanced trees over it, one by expiry and one by name: 32 bytes,
// and 40 beside each name. Its spare memory is up to half of that while it grows, and it has up to
// four times what it needs while it shrinks. Every call examines O(log n) members and changes the
// value in place. Sometimes the value gets a new layout because its spare memory is used up or most
// of it is unused; amortized, that copies a few bytes for each byte of a name that was added. No
// choice of names and leases makes the trees degenerate. At the default maximum of 100,000 members,
// names of 36 bytes take 7.6 to 11.4 MB.
package concurrency
