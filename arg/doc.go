// Package arg parses arguments of commands: integers, floating-point numbers, scores, durations and
// timeouts. Integers and scores are parsed as in Redis, and by [CellInt] as in redis-cell.
// Durations may have a suffix, which Redis does not have.
package arg
