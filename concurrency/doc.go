// Package concurrency bounds how many members may hold a lease at once: an
// in-flight semaphore whose holders are named by the caller and whose leases run
// out by themselves, so that a holder that crashed frees its place.
//
// [Decide] judges a [Call] against the bytes that are stored under a key and
// fills a [Plan], whose Apply makes the bytes to store next. Naming the member
// makes acquiring idempotent: a member that holds a lease is never refused, the
// call only refreshes it. Nothing here reads a clock, does I/O or allocates,
// except that Apply makes the room that a value needs and did not have.
//
// A lease is live until its expiry and not at it. An expired one is dropped by
// the calls that write, a few at a time; until then it takes room but counts for
// nothing.
//
// # Memory and work
//
// Up to 64 members are stored as a list in the order of their expiries: 2 bytes,
// and 10 beside each name. A call reads the list a few times and writes it once.
//
// A larger set is stored with two balanced trees over it, one by expiry and one by
// name: 32 bytes, and 40 beside each name. It has up to half as much again in
// reserve while it grows and up to four times as much while it drains. Every call
// looks at O(log n) members and changes the value in place; now and then, amortised
// a few bytes for each byte of a name that was added, the value is laid out anew
// because its reserve is used up or most of it lies idle. No choice of names and
// leases makes the trees degenerate. At the default cap of 100,000 members, names of
// 36 bytes take 7.6 to 11.4 MB.
package concurrency
