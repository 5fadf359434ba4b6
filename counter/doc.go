// Package counter decides INCREX, the counter with bounds of Redis 8.8 and Valkey 9.2. A [Call]
// adds to a number in a plain string, and a [Plan] has the number to store.
//
// [Decide] is a pure function: the number, its expiry and the instant are parameters. A call with
// integers allocates no memory. Package counter does not know keys, arguments and replies, which
// belong to the commands.
package counter
