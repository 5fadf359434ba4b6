// Package monitor implements the commands that show what the server does and what takes long.
// These are MONITOR, SLOWLOG and LATENCY. It also implements DEBUG SLEEP, which makes a command take
// long.
// Package session records the calls and events that these commands show, in types of package stats.
package monitor
