package command

import (
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// OffloadSized is Offload for a reply that may be large. It first waits until the memory is granted
// that the reply takes, which size returns in bytes. size is nil for a small reply.
func (c *Call) OffloadSized(size func(st env.Store) int, f func(st env.Store, w *resp.Writer)) {
	if c.Client.Exclusive || c.Client.Background {
		f(c.Store, c.W)
		return
	}
	c.Server.Host.Work.Offload(c, size, f)
}

// Offload runs f on a goroutine in the background, with the session parked until f returns. f
// writes the reply to w. It must not use the Call: arguments that f needs have to be copied before.
// Inside a transaction, and in a command that runs in the background already, f runs at once.
func (c *Call) Offload(f func(st env.Store, w *resp.Writer)) { c.OffloadSized(nil, f) }

// AskAside runs ask, which may wait for another process for some seconds, on a goroutine in the background beside other
// commands, and then answer, which writes the reply. It must not be called inside a transaction or a script.
func (c *Call) AskAside(ask func(), answer func(w *resp.Writer)) {
	work := c.Server.Host.Work
	work.Background(c, func(c *Call) {
		work.Aside(c, ask)
		answer(c.W)
	})
}

// MoveToBackground runs do, which is the running command or the rest of it, on a goroutine in the
// background; see [Work].
func (c *Call) MoveToBackground(do func(c *Call)) { c.Server.Host.Work.Background(c, do) }

// LeftLoop reports whether err is the error of [Call.StayOnLoop]. If it is, LeftLoop also has the
// running command start again in the background, and the caller returns without a reply.
func (c *Call) LeftLoop(err error) bool {
	if err != errLeaves { //nolint:errorlint // no caller wraps it
		return false
	}
	cmd := c.Cmd
	c.MoveToBackground(func(c *Call) { c.Server.Host.Work.Rerun(c, cmd) })
	return true
}

// SliceWords is the number of arguments that a command which runs in slices processes in one slice.
// Each argument may take half a microsecond.
const SliceWords = 1 << 10

// InSlices calls do for each of words, which are arguments of the running command, and then done,
// which ends the command. If there are more than SliceWords words, it processes SliceWords at a
// time and lets other clients have their turn in between; the session runs no other command until
// done has returned. Inside a transaction, in the background, and if there is no memory to keep the
// words, everything is done at once. do and done run on the goroutine that feeds the session. done
// may be nil.
func (c *Call) InSlices(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	if len(words) <= SliceWords || c.Client.Exclusive || c.Client.Background {
		c.allAtOnce(words, do, done)
		return
	}
	p := c.NewWait(ArgsCost(words))
	if !p.Reserve() { // without memory for a copy of the words, other clients have to wait
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

// allAtOnce does what InSlices does, but gives other clients no turn in between.
func (c *Call) allAtOnce(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	for _, word := range words {
		do(c, word)
	}
	if done != nil {
		done(c)
	}
}

// RunInSlices is InSlices for work that is not a list of arguments. slice does a part of the work
// and reports whether there is more. Only the last call of slice may write a reply. The first part
// is done at once. Inside a transaction and in the background, all parts are done at once.
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

// Work runs parts of commands on other goroutines, with handles of the store of their own.
type Work interface {
	// Offload runs f on a goroutine in the background, with the session parked until f returns. f
	// writes the reply to w. size returns how much memory the reply takes, in bytes, so that f
	// starts only when the memory is granted; it is nil for a short reply.
	Offload(c *Call, size func(st env.Store) int, f func(st env.Store, w *resp.Writer))
	// Background runs do, which is the running command or the rest of it, on a goroutine in the
	// background. The session is parked until do returns.
	Background(c *Call, do func(c *Call))
	// Rerun runs cmd again, which was counted once already and left its event loop before it
	// changed anything.
	Rerun(c *Call, cmd *Command)
	// Spawn runs f on a goroutine that the shutdown of the server waits for.
	Spawn(f func())
	// SpawnWait does what Spawn does, for work on a client that waits. A manual clock stands still until f has
	// returned.
	SpawnWait(f func())
	// SpawnCall runs f on a goroutine that the shutdown of the server waits for, with its own
	// worker, which has entered the store. much says that the work is long: then f waits for its
	// turn, like a command that [Work].Background runs.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f with another handle of the store, on behalf of the client with that ID, at a
	// fresh instant. It may block, so event loops must not call it.
	WithStore(client int64, f func(st env.Store))
	// Timed runs f, the rest of a command that has left its event loop, and adds the time that f
	// takes to the duration of the command.
	Timed(c *Call, f func(c *Call))
	// Outside runs f, which may wait for a disk. If the caller is a command in the background, it
	// leaves the store while f runs, so that a goroutine that stops the world does not wait for f;
	// it must hold no locks. For other callers f runs at once, inside the store.
	Outside(c *Call, f func())
	// Aside does what Outside does, and lets other commands of the queue of c run while f runs, so that f may wait
	// for longer.
	Aside(c *Call, f func())
}
