// Package scripting has EVAL, SCRIPT and FUNCTION: the cache of scripts, where a script
// runs, and what it sees of the server. Package lua runs it.
package scripting
