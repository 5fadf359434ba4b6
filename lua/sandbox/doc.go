// Package sandbox is a state of the interpreter that scripts of strangers can have. A
// [Guard] is asked before every instruction and bounds time, memory, strings, patterns and
// coroutines; [State] has globals that cannot be changed, and lets no error past. What a
// library of functions needs to keep to the same bounds is here, too: [Builder], arguments,
// errors with their place. The package knows no function that a script could call, and no
// server.
package sandbox
