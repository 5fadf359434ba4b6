// Package env declares the interfaces and settings that commands need from the server around them.
// These are the [Store] and a [Remote], the [Persistence], the [Node] of replication, the [Limits]
// and [Settings] of the configuration, and the [Process]. Package server implements the interfaces
// and passes them as [Options]. Package env does not depend on commands, calls or clients.
package env
