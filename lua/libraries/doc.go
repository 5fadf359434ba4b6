// Package libraries implements the functions of Lua 5.1 and those that Redis adds, except for redis
// itself. Redis adds the libraries bit, struct, cjson and cmsgpack. The package replaces functions
// of the interpreter that have no bound or differ from Lua 5.1. A [Runtime] puts the functions into
// the globals of a sandbox, and they access nothing but that sandbox.
package libraries
