// Package monitor implements the commands that show what the server does and what takes long. These
// are MONITOR, SLOWLOG, LATENCY, and DEBUG SLEEP, which makes a command take long. Package session
// records what they show, in types of package stats.
package monitor
