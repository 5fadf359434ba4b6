// Package stats counts commands, by command and worker, and error replies, by their
// first word. It is written by sessions and read by INFO.
package stats
