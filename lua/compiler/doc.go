// Package compiler turns the source of a script, which may be hostile, into a [Script]:
// what the interpreter runs, and what the text says about itself ([Flags]) or proves
// ([Script.Bounded], [Script.Calls]). It rewrites what the interpreter would
// do otherwise than Lua 5.1. It runs nothing.
package compiler
