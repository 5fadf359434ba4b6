// Package arg reads the arguments of commands: integers, floating-point numbers, scores, durations
// and timeouts, each exactly as Redis does. It has no commands.
package arg
