// Package tokenbucket decides the calls of TB.ACQUIRE. It has token buckets that refill
// continuously or in batches, a leaky bucket as a queue, and Guava's warm-up. All of them have
// reservations, refunds and forced charges.
//
// A [Call] has the parsed parameters of one call. [Decide] decides it on the bytes that are stored
// under its key, and writes the answer and the change of the key to a [Plan]. [Plan.Apply] returns
// the bytes to store. The two steps are separate because several limits may have to agree before
// any of them is charged.
//
// The stored form depends on the mode of the key ([Mode]). A call in another mode, or with another
// rate, converts the stored state. All numbers are integers, in nanoseconds or tokens, except for
// the permits and the cold factor of the warm-up, which are doubles as in Guava; warmup.go describes
// the resulting error.
//
// The package reads no clock, does no I/O and allocates no memory if callers pass enough: callers
// pass the instant and own the bytes.
package tokenbucket
