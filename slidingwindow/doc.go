// Package slidingwindow decides how many units may pass per window of time. It has five modes,
// which differ in what they store about the past:
//
//   - COUNTER stores the count of the present window and that of the previous one. The
//     previous count is weighted by the part of its window that the last full window still
//     overlaps. RussellLuo/slidingwindow, Kong and Cloudflare have this limiter.
//   - FIXED stores one count, and resets it at the end of the window.
//   - LOG stores every instant at which units passed. It is exact.
//   - CALENDAR is FIXED with windows that follow a calendar: see package calendar.
//   - BUCKETS m divides the window into m slots and stores a count for each.
//
// [Decide] decides a [Call] on the bytes that are stored under a key, and writes the result to a
// [Plan]. [Plan.Apply] returns the bytes to store. The two steps are separate so that a caller can
// decide about several keys before it changes any. The package reads no clock and does no I/O.
// Decide allocates no memory, and Apply does so only if the value needs more.
//
// [GiveBack] gives units back to the slot that got them, which [Plan.Slot] identifies. A slot is a
// window, a slot of BUCKETS or an entry of LOG. [Diff] describes such a change for a file or
// a replica.
//
// Windows are half-open: an event no longer counts when its age is the window. COUNTER, FIXED and
// BUCKETS may admit more than the limit within a span of the length of a window, if the span does
// not start with a window. FIXED may admit twice the limit across a boundary. LOG never does,
// except with [Force].
//
// # Memory and work
//
// COUNTER takes 32 bytes, FIXED 24, and CALENDAR 27 and the name of its zone. All three decide in
// constant time. BUCKETS takes 24 + 8m
// bytes, at most 8,024, and reads each slot a few times per call. LOG takes 24 bytes, and 16 for each
// place in a ring. An entry of the ring stands for one distinct instant. The capacity of the ring
// is a power of two. It is at most twice the number of entries while that grows, and at most eight
// times while it shrinks. At the default maximum of 100,000 entries it takes 2 MiB. Each call that
// stores drops expired entries. An entry has the running total of units, not its own units, so that
// a binary search finds the entry at which a call would pass. An admitted call does amortized
// constant work, since every entry is added once and dropped once. Unless the ring has to change
// its size, no call does more than a logarithmic search.
package slidingwindow
