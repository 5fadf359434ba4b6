// Package env declares what commands need of the server around them: the [Store] and a
// [Remote], the [Persistence], the [Limits] and [Settings] of the configuration, and the
// [Process]. Whoever assembles a server implements it and hands it over as [Options]. The
// package knows no command, no call and no client.
package env
