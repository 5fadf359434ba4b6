// Package lua runs scripts as Redis 7 does, in the server's own process, without trusting them.
// [Compile] compiles source into a [Script]. A [Run], from a [Pool], executes the script with a
// [Host], which is all of the server that a script can access.
//
// The interpreter is gopher-lua (Lua 5.1). Package compiler rewrites code that the interpreter
// would compile wrongly, package sandbox bounds time and memory, and package libraries has the
// functions that scripts call. Package lua connects scripts with the server: redis.call, replies,
// KEYS and ARGV. Package scripting has the commands, such as EVAL, and decides when a script may
// run.
package lua
