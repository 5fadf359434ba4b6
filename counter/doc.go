// Package counter judges INCREX, the counter with bounds of Redis 8.8 and Valkey 9.2: a number in a
// plain string, a [Call] that adds to it, and a [Plan] of what the key holds then.
//
// [Decide] is pure: the number, its expiry and the instant are parameters. A call in whole numbers
// allocates nothing. Keys, words and replies are not here.
package counter
