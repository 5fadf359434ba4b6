// Package slidingwindow decides how many units may pass per window of time. It has four modes,
// which differ in what they store about the past:
//
//   - COUNTER stores the count of the present window and of the previous one, which is
//     weighted by the share of it that the last full window still overlaps. It is the
//     limiter of RussellLuo/slidingwindow, and that of Kong and Cloudflare.
//   - FIXED stores one count, and resets it at the window's end.
//   - LOG stores every instant at which units passed. It is exact.
//   - BUCKETS m divides the window into m slots and stores a count for each.
//
// [Decide] decides a [Call] on the bytes that are stored under a key and fills a [Plan], whose
// Apply makes the bytes to store next. They are separate so that a caller can decide about several
// keys before it changes any. Nothing here reads a clock, does I/O or allocates, except that Apply
// allocates the memory that a value lacks.
//
// Windows are half-open: an event whose age is the window no longer counts. COUNTER, FIXED and
// BUCKETS may admit more than the limit within some span as long as a window (FIXED twice as many,
// across a boundary). LOG never does, except with [Force].
//
// # Memory and work
//
// COUNTER takes 32 bytes and FIXED 24, and both decide in constant time. BUCKETS takes 24 + 8m
// bytes, at most 8,024, and reads each slot once per call. LOG takes 24 bytes and 16 for each
// distinct instant that counts, in a ring whose capacity is a power of two: at most twice what
// counts while it grows, at most eight times while it shrinks, and 2 MiB at the default maximum of
// 100,000 entries. The next call that stores drops expired entries. An entry has the running total
// of units, not its own, so that the entry at which a call would pass is found by a binary search:
// an admitted call does amortized constant work (every entry is added once and dropped once) and no
// call does more than a logarithmic search.
package slidingwindow
