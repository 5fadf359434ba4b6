package command

import "github.com/cellserver/cellserver/commands/env"

// Lock locks refs for the running command, the keys that clients which wait for elements of refs
// would move elements to, and the keys that watched watches.
func (c *Call) Lock(refs []env.KeyRef, watched any) {
	if c.Server.Halts.Load()&HaltServing != 0 {
		refs = c.Store.AppendMoves(refs)
	}
	c.Store.Lock(refs, watched)
	c.Store.Serving()
}

// LockAll is Lock for all keys.
func (c *Call) LockAll() {
	c.Store.LockAll()
	c.Store.Serving()
}

// RunLocked runs f for a command that has locked the keys it needs: the client must not be parked
// meanwhile. Then it serves the clients that wait for elements, and unlocks everything.
func (c *Call) RunLocked(f func()) {
	c.Client.Exclusive = true
	f()
	c.ServeLocked()
	c.Client.Exclusive = false
	c.Unlock()
}

// ServeLocked gives elements under the locked keys to the clients that wait for them, in the order
// in which the elements were added and the clients began to wait.
func (c *Call) ServeLocked() {
	if c.Server.Halts.Load()&HaltServing != 0 { // the group with the Serve hook has set it
		c.Server.hooks.serve(c)
	}
}

// Unlock releases all locks and answers the clients that have been served. If the command was
// aborted because the server stops, its effects are discarded, and its client and the clients it
// has served are disconnected.
func (c *Call) Unlock() {
	x := c.Worker.Exclusive
	abandoned := x != nil && x.Aborted()
	if abandoned {
		c.Store.Abandon()
	} else {
		c.Store.Unlock()
	}
	if c.Serves {
		c.Serves = false
		c.Server.hooks.unlocked(c, abandoned)
	}
	if x == nil { // an exclusive command has to be answered before its hooks run
		c.Server.AfterCommand(c.Worker)
	}
}
