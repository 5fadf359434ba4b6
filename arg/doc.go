// Package arg reads the arguments of commands exactly as Redis does. They are integers,
// floating-point numbers, scores, durations and timeouts. The package has no commands.
package arg
