// Package arg parses the arguments of commands exactly as Redis does. The arguments are integers,
// floating-point numbers, scores, durations and timeouts. The package has no commands.
package arg
