package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Worker is the part of a feeding goroutine that commands use: its view of the store and
// scratch of all families.
type Worker struct {
	Lane   any // the session's part of it, which only package session looks at
	Store  Store
	Server *Server
	Keys   [][]byte // scratch of prefetch
	Busy   bool     // a script keeps the gate closed for long: few commands may run
	Work   int      // units done in this batch: see work.go
	Text   []byte   // scratch for a key or value being read
	Refs   []KeyRef // scratch of a script's Hold
	// What is written down of effects; journal is nil where nothing is.
	Journal Recording
	Hits    atomic.Int64
	Misses  atomic.Int64
	Denied  int64 // refusals of the run of equal commands that is not counted yet
	// Volatile says that the words of the running command do not last until the batch
	// ends: a script has made them.
	Volatile bool
	// OnError counts the errors that writers of the worker write.
	OnError func(e resp.Error, from resp.Origin)
	// Call is the command that runs, or the last one that has.
	Call *Call
	// Actor is for whom a worker works that runs no command, 0 for nobody, and Served who
	// takes elements that somebody else has brought, 0 while nobody does.
	Actor, Served int64
	// Serves says that answers to those who waited for elements are ready, and Publishes
	// that messages are: see Hooks.
	Serves, Publishes bool
	// ShutOut says that the command has to wait for another who has stopped the world.
	ShutOut bool
	// Yield hands the running command over to another goroutine; nil for workers that are no
	// coroutine's.
	Yield func()
	// Script is what runs on the coroutine, which its group has put there before it yields.
	Script any
	// Again says that the command has lacked memory, and is to be run from its beginning.
	Again bool
	// Exclusive is the command that this worker runs while nobody else is in the store; nil
	// if it runs none.
	Exclusive *Exclusive
	states    [maxGroups]any // of the groups: see Slot
}
