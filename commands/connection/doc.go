// Package connection implements the commands about client connections: AUTH, HELLO, SELECT,
// RESET, CLIENT and others.
package connection
