// Package sandbox provides a state of the interpreter for untrusted scripts. A [Guard] is called
// before every instruction and bounds time, memory, strings, patterns and coroutines. A [State] has
// globals that cannot be changed, and recovers from all errors. The package also has helpers with
// which a library of functions keeps to the same bounds: [Builder], arguments, errors with their
// position. It has no functions for scripts, and does not know the server.
package sandbox
