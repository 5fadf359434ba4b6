// Package libraries has the functions of Lua 5.1 and those that Redis adds (bit, struct,
// cjson, cmsgpack), but for redis itself. They are our own where the interpreter's have no
// bound or differ from Lua 5.1: a [Runtime] fills the globals of a sandbox with them. They
// reach nothing but that sandbox.
package libraries
