// Package env declares what commands need from the server: the [Store] and a [Remote], the
// [Persistence], the [Limits] and [Settings] of the configuration, and the [Process]. Package
// server implements these and passes them as [Options]. The package does not depend on commands,
// calls or clients.
package env
