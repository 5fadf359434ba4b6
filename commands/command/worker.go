package command

import "sync/atomic"

// Worker is the part of a feeding goroutine that commands use: its view of the store and
// scratch of all families.
type Worker struct {
	Owner  any // whose face this is
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
	kept     [maxGroups]any // by group
}
