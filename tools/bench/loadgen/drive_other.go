//go:build !linux

package loadgen

// driveEpoll is nil: the driver exists only on Linux.
var driveEpoll driver
