package command

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// OffloadSized is Offload for a reply that may be large: the memory that it takes, which size
// says, is waited for first. nil is for one that is not.
func (c *Call) OffloadSized(size func(st env.Store) int, f func(st env.Store, w *resp.Writer)) {
	if c.Client.Exclusive || c.Client.Background {
		f(c.Store, c.W)
		return
	}
	c.Server.Host.Offload(c, size, f)
}

// Offload runs f in the background, with the session parked until it returns. f
// must not touch the Call: what it needs of the arguments has to be copied before.
// Inside a transaction, and in the background, f runs at once.
func (c *Call) Offload(f func(st env.Store, w *resp.Writer)) { c.OffloadSized(nil, f) }

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

// SliceWords is how many words a command that goes on in slices does at a time: each may
// take half a microsecond.
const SliceWords = 1 << 10

// InSlices calls do with the words of the running command, at once if they are few. Else
// only with some of them at a time: others have their turn in between, and the session
// does nothing else before done, which ends the command. Inside a transaction all is done
// at once. do and done run on the goroutine that feeds the session; done may be nil.
func (c *Call) InSlices(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	if len(words) <= SliceWords || c.Client.Exclusive || c.Client.Background {
		c.allAtOnce(words, do, done)
		return
	}
	p := c.NewWait(ArgsCost(words))
	if !p.Reserve() { // there is no memory to keep them: others wait
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

// allAtOnce is InSlices without others in between.
func (c *Call) allAtOnce(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	for _, word := range words {
		do(c, word)
	}
	if done != nil {
		done(c)
	}
}

// GoesOn is inSlices for what is not in the words of the command: slice does a part of it
// and reports whether there is more. It writes nothing before the last one. The first is
// done at once, and inside a transaction all are.
func (c *Call) GoesOn(slice func(c *Call) (more bool)) {
	for slice(c) {
		if !c.Client.Exclusive && !c.Client.Background {
			p := c.NewWait(0)
			p.Slice = slice
			c.Park(p)
			return
		}
	}
}
