package command

import "github.com/cellserver/cellserver/env"

// Lock locks the shards of three groups of keys for the running command: refs; the keys to which
// clients that wait for elements of refs would move these elements; and the keys that the token
// watched watches, unless it is nil. From then on the store records which keys change, for
// ServeLocked.
func (c *Call) Lock(refs []env.KeyRef, watched any) {
	if c.Server.Halts.Load()&HaltServing != 0 {
		refs = c.Store.AppendMoves(refs)
	}
	c.Store.Lock(refs, watched)
	c.Store.Serving()
}

// LockAll is Lock for all keys of all databases.
func (c *Call) LockAll() {
	c.Store.LockAll()
	c.Store.Serving()
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
	if c.Server.Halts.Load()&HaltServing != 0 { // the group with the Serve hook has set it
		c.Server.hooks.serve(c)
	}
}

// Unlock releases all locks and answers the clients that have been served. If the command was
// aborted because the server stops, Unlock discards the effects of the command, and disconnects its
// client and the clients that it has served. It calls the AfterCommand hooks, except for an
// exclusive command, which must be answered before.
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
