// Package tokenbucket decides the calls of TB.ACQUIRE: token buckets that refill
// continuously or in batches, a leaky bucket as a queue, and Guava's warm-up, each
// with reservations, refunds, forced charges and partial grants.
//
// A [Call] holds the parsed parameters of one call. [Decide] judges it against the
// bytes that are stored under its key and fills a [Plan] with the answer and with
// what has to happen to the key; [Plan.Apply] yields the bytes to store. The two
// are apart because several limits may have to agree before any of them is charged.
//
// The stored form depends on the mode of the key ([Mode]); a call in another mode,
// or with another rate, converts what it finds. Everything is an integer number of
// nanoseconds or tokens, but for the stored permits of the warm-up, which are
// Guava's doubles (see warmup.go for the error that costs).
//
// The package reads no clock, does no I/O and allocates nothing: callers pass the
// instant and own the bytes. It promises to importers what its exported names say.
package tokenbucket
