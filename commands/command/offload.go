package command

import "github.com/cellserver/cellserver/resp"

// OffloadSized is Offload for a reply that may be large: the memory that it takes, which size
// says, is waited for first. nil is for one that is not.
func (c *Call) OffloadSized(size func(st Store) int, f func(st Store, w *resp.Writer)) {
	if c.Client.Exclusive || c.Client.Background {
		f(c.Store, c.W)
		return
	}
	c.Server.Host.Offload(c, size, f)
}

// Offload runs f in the background, with the session parked until it returns. f
// must not touch the Call: what it needs of the arguments has to be copied before.
// Inside a transaction, and in the background, f runs at once.
func (c *Call) Offload(f func(st Store, w *resp.Writer)) { c.OffloadSized(nil, f) }

// MoveToBackground runs do, which is the running command or what is left to do of it, beside
// the loops; see [Host].
func (c *Call) MoveToBackground(do func(c *Call)) { c.Server.Host.Background(c, do) }

// LeftLoop reports whether err is errLeaves, and has the running command run beside the
// loops then.
func (c *Call) LeftLoop(err error) bool {
	if err != errLeaves { //nolint:errorlint // nobody wraps it
		return false
	}
	cmd := c.Cmd
	c.MoveToBackground(func(c *Call) { c.Server.Host.Rerun(c, cmd) })
	return true
}
