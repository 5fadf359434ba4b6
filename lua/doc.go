// Package lua runs scripts as Redis 7 does, in the server's own process, without
// trusting them. [Compile] turns source into a [Script]; a [Run], taken from a
// [Pool], executes it against a [Host], which is all that a script can reach.
//
// The interpreter is gopher-lua (Lua 5.1). What it leaves open is closed here: a
// guard that is asked before every instruction and bounds time, memory, strings,
// patterns and coroutines; libraries of our own wherever its numbers and strings
// differ from those of Lua 5.1; globals that a script can neither add to nor
// change. Which commands there are, and when a script may run, is package
// commands' business.
package lua
