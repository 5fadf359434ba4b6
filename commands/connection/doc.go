// Package connection has the commands on client connections: AUTH, HELLO, SELECT, RESET,
// CLIENT.
package connection
