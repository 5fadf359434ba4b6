// Package sandbox provides a state of the interpreter for untrusted scripts. The interpreter calls
// a [Guard] before every instruction, and the guard bounds time, memory, strings, patterns and
// coroutines. A [State] has globals that scripts cannot change, and recovers from all errors. The
// package also has helpers by which libraries keep to the same bounds: [Builder], checks of
// arguments, and errors with their position. It has no functions for scripts, and does not depend
// on the server.
package sandbox
