//go:build !linux

package loadgen

// driveEpoll is a driver for Linux.
var driveEpoll driver
