// Package stats counts commands, by command and worker, and error replies, by their first
// word. Sessions write the counts and INFO reads them.
package stats
