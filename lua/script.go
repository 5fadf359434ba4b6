package lua

import "github.com/cellserver/cellserver/lua/compiler"

// Script is a compiled script. It does not change, and any number of runs may use it at the same
// time.
type Script = compiler.Script

// Call is one redis.call or redis.pcall of a script whose calls are known.
type Call = compiler.Call

// Flags are the flags in a script's first line.
type Flags = compiler.Flags

// MaxSource is the maximum length of source for Compile, in bytes.
const MaxSource = compiler.MaxSource

// Compile compiles a script: see [compiler.Compile].
func Compile(source []byte) (*Script, error) { return compiler.Compile(source) }

// Declared returns the flags of a script that has not been compiled yet, and no flags if its first
// line is invalid.
func Declared(source []byte) Flags { return compiler.Declared(source) }
