package commands

import "github.com/cellserver/cellserver/resp"

// Host is what commands may ask of the session that runs them, beyond the reply: to wait,
// to go on elsewhere, to reach the store from another goroutine. All of it is rare, since
// an interface stands between.
type Host interface {
	// Park has the client of p wait for it.
	Park(p *Parked)
	// Offload runs f beside the loops, with the session parked until it returns; size says
	// how much memory its reply takes, nil that it is short.
	Offload(c *Ctx, size func(st Store) int, f func(st Store, w *resp.Writer))
	// Background runs do, which is the running command or what is left to do of it, on a
	// goroutine beside the loops.
	Background(c *Ctx, do func(c *Ctx))
	// Rerun runs a command again that has been counted, and has left its loop before it did
	// anything.
	Rerun(c *Ctx, cmd *Command)
	// Spawn runs f on a goroutine that the end of the server waits for.
	Spawn(f func())
	// WithStore runs f on a store of its own, for the work of a client, at a fresh instant.
	// Only for goroutines that may block.
	WithStore(client int64, f func(st Store))
	// Recovered notes a panic, without what it carried.
	Recovered(reason any)
	// CountError counts an error reply.
	CountError(e resp.Error, from resp.Origin)
}

// moveBeside runs do, which is the running command or what is left to do of it, beside
// the loops; see [Host].
func (c *Ctx) moveBeside(do func(c *Ctx)) { c.server.host.Background(c, do) }

// left reports whether err is errLeaves, and has the running command run beside the
// loops then.
func (c *Ctx) left(err error) bool {
	if err != errLeaves { //nolint:errorlint // nobody wraps it
		return false
	}
	cmd := c.Cmd
	c.moveBeside(func(c *Ctx) { c.server.host.Rerun(c, cmd) })
	return true
}

// offload is Offload for a reply that may be large: the memory that it takes, which size
// says, is waited for first. nil is for one that is not.
func (c *Ctx) offload(size func(st Store) int, f func(st Store, w *resp.Writer)) {
	if c.Client.exclusive || c.Client.beside {
		f(c.Store, c.W)
		return
	}
	c.server.host.Offload(c, size, f)
}
