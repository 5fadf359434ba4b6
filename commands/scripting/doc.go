// Package scripting has EVAL, SCRIPT and FUNCTION. It caches scripts, decides where a script
// runs, and gives it access to the server. Package lua runs it.
package scripting
