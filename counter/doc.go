// Package counter decides INCREX, the counter with bounds of Redis 8.8 and Valkey 9.2. A [Call]
// adds to a number in a plain string, and a [Plan] has the number to store.
//
// [Decide] is pure: the number, its expiry and the instant are parameters. A call with integers
// allocates nothing. Keys, arguments and replies belong to the commands.
package counter
