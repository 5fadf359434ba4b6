// Package scripting implements EVAL, SCRIPT and FUNCTION. It caches scripts, decides on which
// goroutine a script runs, and gives scripts access to the server. Package lua is the interpreter.
package scripting
