package command

import (
	"time"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// Host declares what commands may ask of the session that runs them, in addition to the reply: to
// wait, to continue on another goroutine, to use the store from another goroutine. All of it is
// rare, since it costs an interface call.
type Host interface {
	// Park makes the client of p wait for p. Keep adds bytes, which may be negative, to the memory
	// that waits and transactions take, unless that would exceed maxmemory-clients: then it returns
	// false.
	Park(p *Wait)
	Keep(bytes int64) bool
	// Offload runs f in the background, with the session parked until f returns. size returns how
	// much memory the reply takes. It is nil for a short reply.
	Offload(c *Call, size func(st env.Store) int, f func(st env.Store, w *resp.Writer))
	// Background runs do, which is the running command or the rest of it, on a goroutine in the
	// background.
	Background(c *Call, do func(c *Call))
	// Rerun runs a command again that was counted and has left its loop before it changed anything.
	Rerun(c *Call, cmd *Command)
	// AfterPause delays f until the end of CLIENT PAUSE and returns true; it returns false if there
	// is no pause. proceed is false if the command must not run any more. The caller is in the
	// store.
	AfterPause(f func(proceed bool)) bool
	// EachWorker calls f for every worker, and returns since when their statistics count. f may
	// read guarded fields.
	EachWorker(f func(w *Worker)) (since limit.Instant)
	// Spawn runs f on a goroutine that the shutdown of the server waits for.
	Spawn(f func())
	// SpawnCall runs f on a goroutine with its own worker, which has entered the store. If much is
	// set, for long work, it waits until few of this kind run.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f with its own handle of the store, on behalf of a client, at a fresh instant.
	// Only goroutines that may block may call it.
	WithStore(client int64, f func(st env.Store))
	// Recovered records a panic, without its value.
	Recovered(reason any)
	// CountError counts an error reply.
	CountError(e resp.Error, from resp.Origin)

	// Run runs the command of c, whose arity and permissions were checked, and counts it. Reject
	// replies to a command that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// Timed runs f, the rest of a command that has left its loop, and adds the time that f takes to
	// the command's.
	Timed(c *Call, f func(c *Call))
	// Outside runs f, which may wait for a disk, such that a goroutine that stops the world does
	// not wait for f. The caller is in the background and has no locks. For other callers f runs at
	// once.
	Outside(c *Call, f func())
	// Durations returns how long the timed calls of the command with that id took, and the number
	// of all its calls. ClassDurations returns the same distribution for a class of commands.
	Durations(id int) (d stats.Distribution, calls int64)
	ClassDurations(class stats.Class) stats.Distribution
	// ParkExclusive parks the client for a command that has to run while no other goroutine is in
	// the store. do is the rest of the command. It runs after Enqueue was called with the result.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith is Enqueue after need bytes were granted for the reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive implements SCRIPT KILL. EndExclusive ends the running command, even if it has
	// written, because the server stops at once, and disconnects all clients except asking.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps all other goroutines out of the store for the rest of the batch. It returns
	// false if another goroutine does that already. The command then runs again when that is over.
	StopWorld(c *Call) bool
	// Pump sends the client of c the stream p after the reply: the client becomes a replica. A
	// goroutine in the store fills p, so p must not wait for a lock of a goroutine that stops the
	// world.
	Pump(c *Call, p transport.Pump)
	// RunOnCoroutine runs a call of unknown duration, with the world stopped. If the call takes
	// long, the client is parked. It reports whether the call is over and has to run again.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
	// CountRejected counts a refused call of cmd by a command that runs others.
	CountRejected(c *Call, cmd *Command)

	// Pause delays the commands that halt selects for d. Unpause ends the pause.
	Pause(st env.Store, d time.Duration, halt uint32)
	Unpause()
	// Unblock ends the wait of a client, and reports whether there was a wait that can be ended.
	Unblock(cl *Client, withError bool) bool
	// Statistics returns the figures of the server. ResetStatistics resets them.
	Statistics() Statistics
	ResetStatistics()
	// Activity returns what a client is doing. Any goroutine may call it. NoteCommand records the
	// command that the client runs, before it ends and is recorded anyway.
	Activity(cl *Client) Activity
	NoteCommand(cl *Client, cmd *Command)

	// CountClients returns the number of clients, and how many of them are blocked.
	CountClients() (all, blocked int64)
	// Client returns the client with that id, or nil. Clients returns all clients in the order of
	// their arrival.
	Client(id int64) *Client
	Clients() []*Client
	// Post queues a message for a client, b or the bytes of f, and returns how much memory that
	// takes. Follow does what next requires, and Posted adds the memory to the statistics: call
	// both without locks. Push is all three for one message.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves the messages for the client of c into its reply.
	TakeMessages(c *Call)
}
