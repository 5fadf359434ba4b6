// Package monitor has the commands that show what the server does and what takes long:
// MONITOR, SLOWLOG, LATENCY, and DEBUG SLEEP, which makes something take long. What they show
// is kept by package session in package stats.
package monitor
