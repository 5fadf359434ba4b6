// Package parse reads the words of commands: integers, floating point numbers, timeouts
// and glob patterns, each exactly as Redis does. It knows no command.
package parse
