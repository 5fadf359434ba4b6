// Package chaos has the store of a server meet real nodes of Redis and Valkey over networks
// that fail. It is a module of its own, so that what the proxy between them needs never
// reaches the server.
package chaos
