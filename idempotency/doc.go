// Package idempotency remembers the charging calls of a key, so that a call that is sent again
// charges only once.
//
// A client names a call by a token ([Call.Token]). The records of the remembered calls are stored
// after the state of the key's limiter, in one value: [Split] separates the two. [Find] looks a
// token up. A [Plan] forgets the calls whose time has passed, adds the record of a new call, and
// encodes the result. The limiter does not read the records, and this package does not read the
// limiter's state.
//
// A token is stored as a hash of 120 bits, made by SipHash with a random key that is stored in the
// value. A record takes 28 bytes, twice as many if it has a [Record.Missing] or a [Record.Ready],
// and the records of a key 28 bytes more. Up to a half of the slots is free, so that the value need
// not grow with each record. From 33 slots on an index takes 5 to 14 bytes for each. Looking up,
// adding and forgetting a record take constant time, apart from the copies when the value changes
// its length.
//
// The package reads no clock and does no I/O. It allocates memory only if the value needs more than
// the caller gives.
package idempotency
