package command

import "github.com/cellserver/cellserver/env"

// On a server with --store, the functions of this file lock nothing, because no key is in this
// process. The Remote decides the asks of a transaction together.

// Lock locks the shards of three groups of keys for the running command: refs; the other keys that
// are needed to serve the clients that wait for elements of refs, such as the destinations of
// BLMOVE; and the keys that the token watched watches, unless it is nil. From then on the store
// records which keys change, for ServeLocked.
func (c *Call) Lock(refs []env.KeyRef, watched any) {
	if c.local == nil {
		return
	}
	if c.Server.Halts.Load()&HaltServing != 0 {
		refs = c.local.AppendMoves(refs)
	}
	c.local.Lock(refs, watched)
	c.local.Serving()
}

// LockAll does what Lock does, for all keys of all databases.
func (c *Call) LockAll() {
	if c.local != nil {
		c.local.LockAll()
		c.local.Serving()
	}
}

// RunLocked runs f for a command that has locked the keys it needs. The client cannot be parked
// while f runs. Then RunLocked serves the clients that wait for elements, and unlocks everything.
func (c *Call) RunLocked(f func()) {
	c.Client.Exclusive = true
	f()
	c.ServeLocked()
	c.Client.Exclusive = false
	c.Unlock()
}

// ServeLocked gives elements under the locked keys to the clients that wait for them. It serves the
// keys in the order in which elements were added, and the clients in the order in which they began
// to wait.
func (c *Call) ServeLocked() {
	if c.Server.Halts.Load()&HaltServing != 0 { // a group with the Serve hook has set the bit
		c.Server.hooks.serve(c)
	}
}

// Begin says that the running command, which has locked its keys, must run to its end: see
// [env.Locker].
func (c *Call) Begin() {
	if c.local != nil {
		c.local.Begin()
	}
}

// Unlock releases all locks and answers the clients that have been served. If the command was
// aborted because the server stops, Unlock discards the effects of the command and the replies of
// the clients that it has served; the connections of all clients are then being closed. Unlock calls
// the AfterCommand hooks, except for an exclusive command, which must be answered before.
func (c *Call) Unlock() {
	x := c.Worker.Exclusive
	abandoned := x != nil && x.Aborted()
	if abandoned && c.local != nil {
		c.local.Abandon()
	} else {
		c.ReleaseLocks()
	}
	if c.Serves {
		c.Serves = false
		c.Server.hooks.unlocked(c, abandoned)
	}
	if x == nil { // an exclusive command has to be answered before its hooks run
		c.Server.AfterCommand(c.Worker)
	}
}

// ReleaseLocks releases all locks of the worker's store, and does nothing if there are none. It is
// for commands that end early, such as by a panic; others end by [Call.Unlock].
func (w *Worker) ReleaseLocks() {
	if w.local != nil {
		w.local.Unlock()
	}
}

// Full reports whether the memory of the keys in this process is at maxmemory. It is false if there
// are none.
func (w *Worker) Full() bool { return w.local != nil && w.local.Full() }
