package lua

import "github.com/cellserver/cellserver/lua/compiler"

// Script is a compiled script. It does not change and may be used by any number of runs
// at once.
type Script = compiler.Script

// Call is one redis.call or redis.pcall of a script whose calls are known.
type Call = compiler.Call

// Flags are what a script says about itself in its first line.
type Flags = compiler.Flags

// MaxSource is the longest source that Compile takes, in bytes.
const MaxSource = compiler.MaxSource

// Compile reads a script, as [compiler.Compile] says.
func Compile(source []byte) (*Script, error) { return compiler.Compile(source) }

// Declared is what the first line of a script that has yet to be compiled says; it is
// nothing if that is wrong.
func Declared(source []byte) Flags { return compiler.Declared(source) }
