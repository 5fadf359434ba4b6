package command

import (
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// Host is what commands may ask of the session that runs them, beyond the reply: to wait,
// to go on elsewhere, to reach the store from another goroutine. All of it is rare, since
// an interface stands between.
type Host interface {
	// Park has the client of p wait for it.
	Park(p *Wait)
	// Offload runs f beside the loops, with the session parked until it returns; size says
	// how much memory its reply takes, nil that it is short.
	Offload(c *Call, size func(st Store) int, f func(st Store, w *resp.Writer))
	// Background runs do, which is the running command or what is left to do of it, on a
	// goroutine beside the loops.
	Background(c *Call, do func(c *Call))
	// Rerun runs a command again that has been counted, and has left its loop before it did
	// anything.
	Rerun(c *Call, cmd *Command)
	// AfterPause keeps f for the end of CLIENT PAUSE, if there is one; f is told whether to go
	// on. The caller is in the store.
	AfterPause(f func(goOn bool)) bool
	// EachWorker calls f for every worker there is, and returns since when they count. f may
	// read what is guarded by itself.
	EachWorker(f func(w *Worker)) (since limit.Instant)
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

// MoveBeside runs do, which is the running command or what is left to do of it, beside
// the loops; see [Host].
func (c *Call) MoveBeside(do func(c *Call)) { c.Server.Host.Background(c, do) }

// Left reports whether err is errLeaves, and has the running command run beside the
// loops then.
func (c *Call) Left(err error) bool {
	if err != errLeaves { //nolint:errorlint // nobody wraps it
		return false
	}
	cmd := c.Cmd
	c.MoveBeside(func(c *Call) { c.Server.Host.Rerun(c, cmd) })
	return true
}

// OffloadSized is Offload for a reply that may be large: the memory that it takes, which size
// says, is waited for first. nil is for one that is not.
func (c *Call) OffloadSized(size func(st Store) int, f func(st Store, w *resp.Writer)) {
	if c.Client.Exclusive || c.Client.Beside {
		f(c.Store, c.W)
		return
	}
	c.Server.Host.Offload(c, size, f)
}
