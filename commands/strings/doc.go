// Package strings has the commands on plain strings and counters.
package strings
