// Package connection implements the commands about client connections: AUTH, HELLO, SELECT, RESET,
// CLIENT and others. It also limits failed logins.
package connection
