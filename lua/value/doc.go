// Package value parses and formats numbers as Lua 5.1 does, and makes values of the interpreter. It
// avoids allocations where possible. It does not depend on scripts or on the server.
package value
