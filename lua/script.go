package lua

import "github.com/cellserver/cellserver/lua/compiler"

// Script is a compiled script. It never changes, and any number of runs may use it at the same
// time.
type Script = compiler.Script

// Call is one redis.call or redis.pcall of a script all of whose calls are known. See
// [Script.Calls].
type Call = compiler.Call

// Flags are the flags in the first line of a script, "#!lua flags=...".
type Flags = compiler.Flags

// MaxSource is the maximum length in bytes of the source of a script.
const MaxSource = compiler.MaxSource

// Compile compiles a script. An error is a complete error reply. See [compiler.Compile].
func Compile(source []byte) (*Script, error) { return compiler.Compile(source) }

// Declared returns the flags of a script without compiling it. It returns no flags if the first
// line is invalid.
func Declared(source []byte) Flags { return compiler.Declared(source) }
