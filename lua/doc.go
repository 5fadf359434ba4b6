// Package lua runs scripts as Redis 7 does, in the server's own process, without trusting them.
// [Compile] compiles source into a [Script]. A [Run], from a [Pool], executes it with a [Host],
// which is all that a script can access.
//
// The interpreter is gopher-lua (Lua 5.1). Package compiler rewrites code that it would compile
// wrongly, sandbox bounds time and memory, and libraries has the functions that scripts call. This
// package connects scripts with the server: redis.call, replies, KEYS and ARGV. Package scripting
// has the commands, and decides when a script may run.
package lua
