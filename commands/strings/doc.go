// Package strings implements the commands on plain strings and counters.
package strings
