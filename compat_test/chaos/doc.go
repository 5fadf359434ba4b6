// Package chaos tests the store of a server with real nodes of Redis and Valkey over networks that
// fail. It is a module of its own, so that the dependencies of the proxy between them do not reach
// the server.
package chaos
