// Package compat_test compares the server with what it stands in for: Redis, redis-cell and libraries.
// It plays recorded calls, runs the scripts of all groups of commands in other settings and, with the
// build tag real, real clients and limiter libraries.
package compat_test
