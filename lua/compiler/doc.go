// Package compiler compiles the source of a script, which may be hostile, into a [Script]. A Script
// has the code for the interpreter, the flags in the first line of the source ([Flags]), and facts
// that the source proves ([Script.Bounded], [Script.Calls]). The package rewrites code that the
// interpreter would run differently from Lua 5.1. The package does not execute scripts.
package compiler
