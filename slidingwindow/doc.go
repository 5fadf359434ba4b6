// Package slidingwindow decides how many units may pass per window of time, in
// four ways that differ in what they remember of the past:
//
//   - COUNTER keeps the count of this window and of the previous one, which it
//     weighs by the share of it that the last full window still overlaps. It is
//     RussellLuo/slidingwindow's limiter, and Kong's and Cloudflare's.
//   - FIXED keeps one count, and forgets it at the window's end.
//   - LOG keeps every instant at which units passed. It is exact.
//   - BUCKETS m cuts the window in m slots and keeps a count for each.
//
// [Decide] judges a [Call] against the bytes that are stored under a key and
// fills a [Plan], whose Apply makes the bytes to store next. The two are apart so
// that a caller can decide about several keys before it changes any. Nothing here
// reads a clock, does I/O or allocates, except that Apply makes the room that a
// value needs and did not have.
//
// Windows are half-open: an event whose age is the window no longer counts.
// COUNTER, FIXED and BUCKETS may admit more than the limit within some span as
// long as a window (FIXED twice as many, across a boundary); LOG never does
// without [Force].
//
// # Memory and work
//
// COUNTER takes 32 bytes and FIXED 24, and both decide in constant time.
// BUCKETS takes 24 + 8m bytes, at most 8,024, and looks at each slot once per
// call. LOG takes 24 bytes and 16 for each distinct instant that counts, in a ring
// whose capacity is a power of two: at most twice what counts while it grows, at
// most eight times while it drains, and 2 MiB at the default cap of 100,000
// entries. What has expired is dropped by the next call that stores. An entry
// holds the running total of units, not its own, so that the entry at which a
// call would pass is found by bisection: an admitted call does amortised constant
// work (every entry is added once and dropped once) and no call does more than a
// logarithmic search.
package slidingwindow
