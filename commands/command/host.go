package command

import (
	"time"

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
	// SpawnCall runs f on a goroutine with a worker of its own that has entered the store. If
	// it is much work it waits until few of its kind run.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f on a store of its own, for the work of a client, at a fresh instant.
	// Only for goroutines that may block.
	WithStore(client int64, f func(st Store))
	// Recovered notes a panic, without what it carried.
	Recovered(reason any)
	// CountError counts an error reply.
	CountError(e resp.Error, from resp.Origin)

	// Run runs the command of c, whose words are right, and counts it. Reject answers one
	// that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// Timed runs f, and counts the time that it takes as that of cmd.
	Timed(c *Call, cmd *Command, f func(c *Call))
	// ParkExclusive parks the client for a command, of which do is what is left to be done,
	// that is to run while nobody else is in the store. It does once Enqueue has it.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith is Enqueue once so many bytes are granted to the reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive is SCRIPT KILL. EndExclusive ends what runs, whatever it has done, since
	// the server is to stop at once, and cuts off all clients but the one who asks.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps everybody else out of the store for the rest of the batch. It returns
	// false if another does so: then the command is run again once that is over.
	StopWorld(c *Call) bool
	// RunOnCoroutine runs a call of which nobody knows how long it takes, with the world
	// stopped. If it takes long the client is parked. It reports whether the call is over and
	// is to be run again.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
	// CountRejected counts a call of cmd, by a command that runs others, that is refused.
	CountRejected(c *Call, cmd *Command)

	// Pause has commands wait for d, those of halt; Unpause ends that.
	Pause(st Store, d time.Duration, halt uint32)
	Unpause()
	// Unblock ends the wait of a client, and reports whether there was one that can be ended.
	Unblock(cl *Client, withError bool) bool
	// Statistics are the figures of the server, and ResetStatistics begins to count again.
	Statistics() Statistics
	ResetStatistics()
	// Activity is what a client does. Any goroutine may ask. NoteCommand notes the command
	// that it runs, which would be noted behind it.
	Activity(cl *Client) Activity
	NoteCommand(cl *Client, cmd *Command)

	// CountClients returns how many clients there are, and of how many a command waits.
	CountClients() (all, blocked int64)
	// Client returns the client of that id, or nil; Clients all, in the order they came.
	Client(id int64) *Client
	Clients() []*Client
	// Post leaves a message with a client, b or the bytes of f, and returns how much memory
	// that takes. Follow does what it asks for, and Posted counts the memory, both without
	// locks. Push is all of this for one message.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves messages for the client of c into its reply.
	TakeMessages(c *Call)
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
