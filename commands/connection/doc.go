// Package connection has the commands of a client on itself and on others: AUTH, HELLO,
// SELECT, RESET, CLIENT.
package connection
