package command

import "github.com/cellserver/cellserver/commands/env"

// Lock locks refs for the running command, what those need who wait for elements under
// them, and what watched watches.
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

// RunLocked runs f for a command that has locked what it needs: nothing may park meanwhile.
// Then it gives those who wait for elements what there is, and unlocks all.
func (c *Call) RunLocked(f func()) {
	c.Client.Exclusive = true
	f()
	c.ServeLocked()
	c.Client.Exclusive = false
	c.Unlock()
}

// ServeLocked gives those who wait for elements what is locked now, in the order in which
// it came and they did.
func (c *Call) ServeLocked() {
	if c.Server.Halts.Load()&HaltServing != 0 { // which the group with that hook has set
		c.Server.hooks.serve(c)
	}
}

// Unlock unlocks all, and answers those who have been served. What a command did that is
// ended with the server is forgotten: its clients, and those it has served, are cut off.
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
	if x == nil { // else it has to be answered first
		c.Server.AfterCommand(c.Worker)
	}
}
