// Package lua runs scripts as Redis 7 does, in the server's own process, without trusting
// them. [Compile] turns source into a [Script]. A [Run], taken from a [Pool], executes it
// against a [Host], which is all that a script can reach.
//
// The interpreter is gopher-lua (Lua 5.1). Package compiler rewrites what it would compile
// wrongly, sandbox bounds time and memory, and libraries has the functions that scripts
// call. This package has what leads from a script to the server and back: redis.call,
// replies, KEYS and ARGV. Which commands there are, and when a script may run, is the
// business of package scripting.
package lua
