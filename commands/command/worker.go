package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Worker is the part of a feeding goroutine that commands use: its view of the store, and
// what the groups keep for it. One goroutine at a time uses it.
type Worker struct {
	Lane   any // the session's part of it, which only package session looks at
	Store  Store
	Server *Server
	// Journal is what is written down of effects; nil where nothing is.
	Journal Recording
	// OnError counts the errors that writers of the worker write.
	OnError func(e resp.Error, from resp.Origin)
	// Call is the command that runs, or the last one that has.
	Call *Call
	Work int // units done in this batch: see work.go
	running
	scratch
	lookups
	states [maxGroups]any // of the groups: see Slot
}

// running is how the command of a worker runs.
type running struct {
	Busy bool // a script keeps others out of the store for long: few commands may run
	// Volatile says that the words of the running command do not last until the batch
	// ends: a script has made them.
	Volatile bool
	// ShutOut says that the command has to wait for another who has stopped the world.
	ShutOut bool
	// Again says that the command has lacked memory, and is to be run from its beginning.
	Again bool
	// Serves says that answers to those who waited for elements are ready, and Publishes
	// that messages are: see Hooks.
	Serves, Publishes bool
	// Actor is for whom a worker works that runs no command, 0 for nobody, and Served who
	// takes elements that somebody else has brought, 0 while nobody does.
	Actor, Served int64
	// Exclusive is the command that this worker runs while nobody else is in the store; nil
	// if it runs none.
	Exclusive *Exclusive
	// Yield hands the running command over to another goroutine; nil for workers that are no
	// coroutine's. Script is what runs then, which its group has put there before.
	Yield  func()
	Script any
}

// scratch is room that a command uses for as long as it runs.
type scratch struct {
	Keys [][]byte // of prefetch
	Text []byte   // a key or value being read
	Refs []KeyRef // what a command locks
}

// lookups counts what was found. Denied are the refusals of the run of equal commands that
// is not counted yet.
type lookups struct {
	Hits, Misses atomic.Int64
	Denied       int64
}
