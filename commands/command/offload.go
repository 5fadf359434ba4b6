package command

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// OffloadSized is Offload for a reply that may be large: it first waits for the memory that size
// says the reply takes. size is nil for a small reply.
func (c *Call) OffloadSized(size func(st env.Store) int, f func(st env.Store, w *resp.Writer)) {
	if c.Client.Exclusive || c.Client.Background {
		f(c.Store, c.W)
		return
	}
	c.Server.Host.Offload(c, size, f)
}

// Offload runs f in the background, with the session parked until f returns. f must not use the
// Call: arguments that it needs have to be copied before. Inside a transaction, and in the
// background, f runs at once.
func (c *Call) Offload(f func(st env.Store, w *resp.Writer)) { c.OffloadSized(nil, f) }

// MoveToBackground runs do, which is the running command or the rest of it, on a goroutine outside
// of the event loops; see [Host].
func (c *Call) MoveToBackground(do func(c *Call)) { c.Server.Host.Background(c, do) }

// LeftLoop reports whether err is errLeaves. If it is, LeftLoop also moves the running command to
// the background.
func (c *Call) LeftLoop(err error) bool {
	if err != errLeaves { //nolint:errorlint // no caller wraps it
		return false
	}
	cmd := c.Cmd
	c.MoveToBackground(func(c *Call) { c.Server.Host.Rerun(c, cmd) })
	return true
}

// SliceWords is how many arguments a command that runs in slices processes at a time. Each argument
// may take half a microsecond.
const SliceWords = 1 << 10

// InSlices calls do for each of words, arguments of the running command. If there are many it
// processes SliceWords of them at a time: other clients have their turn in between, and this
// session runs nothing else before done, which ends the command. Inside a transaction everything is
// done at once. do and done run on the goroutine that feeds the session. done may be nil.
func (c *Call) InSlices(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	if len(words) <= SliceWords || c.Client.Exclusive || c.Client.Background {
		c.allAtOnce(words, do, done)
		return
	}
	p := c.NewWait(ArgsCost(words))
	if !p.Reserve() { // no memory to keep the words, so other clients have to wait
		c.allAtOnce(words, do, done)
		return
	}
	words = CloneArgs(words)
	p.Slice = func(c *Call) (more bool) {
		n := min(len(words), SliceWords)
		for _, word := range words[:n] {
			do(c, word)
		}
		if words = words[n:]; len(words) > 0 {
			return true
		}
		if done != nil {
			done(c)
		}
		return false
	}
	c.Park(p)
}

// allAtOnce is InSlices without interruption.
func (c *Call) allAtOnce(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	for _, word := range words {
		do(c, word)
	}
	if done != nil {
		done(c)
	}
}

// RunInSlices is InSlices for work that is not a list of arguments: slice does a part of it and reports
// whether there is more. Only the last call of slice may write a reply. The first part is done at
// once, and inside a transaction all parts are.
func (c *Call) RunInSlices(slice func(c *Call) (more bool)) {
	for slice(c) {
		if !c.Client.Exclusive && !c.Client.Background {
			p := c.NewWait(0)
			p.Slice = slice
			c.Park(p)
			return
		}
	}
}
