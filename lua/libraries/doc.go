// Package libraries implements the functions of Lua 5.1 and those that Redis adds, except for redis
// itself. Redis adds bit, struct, cjson and cmsgpack. The package replaces the interpreter's
// functions where they have no bound or differ from Lua 5.1. A [Runtime] puts them into the globals
// of a sandbox. They access nothing but that sandbox.
package libraries
