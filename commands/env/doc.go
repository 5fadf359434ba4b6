// Package env declares what commands need from the server around them. That is the [Store] and a
// [Remote], the [Persistence], the [Node] of replication, the [Limits] and [Settings] of the
// configuration, and the [Process]. Package server implements these and passes them as [Options].
// The package does not depend on commands, calls or clients.
package env
