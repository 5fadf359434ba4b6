// Package parse reads the arguments of commands: integers, floating-point numbers, timeouts
// and glob patterns, each exactly as Redis does. It has no commands.
package parse
