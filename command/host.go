package command

import (
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// Host declares what a command may ask of the session that runs it, in addition to the reply: to
// wait, to continue on another goroutine, to use the store from another goroutine. A call of Host
// costs an interface call, so only rare operations are here.
type Host interface {
	// Park makes the client of p wait for p. Keep adds bytes, which may be negative, to the memory
	// that waits and transactions of all clients take. If the sum would exceed maxmemory-clients,
	// Keep adds nothing and returns false.
	Park(p *Wait)
	Keep(bytes int64) bool
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
	// AfterPause delays f until the end of CLIENT PAUSE and returns true; it returns false if there
	// is no pause. If the server stops before the end of the pause, f is called with proceed false:
	// then the command must not run any more. The caller has entered the store.
	AfterPause(f func(proceed bool)) bool
	// EachWorker calls f for every worker, and returns the instant from which their statistics
	// count. It holds the lock that guards these statistics while it calls f.
	EachWorker(f func(w *Worker)) (since limit.Instant)
	// Spawn runs f on a goroutine that the shutdown of the server waits for.
	Spawn(f func())
	// SpawnCall runs f on a goroutine that the shutdown of the server waits for, with its own
	// worker, which has entered the store. If much is set, for long work, f waits until fewer than
	// the maximum number of slow commands run.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f with another handle of the store, on behalf of the client with that ID, at a
	// fresh instant. It may block, so event loops must not call it.
	WithStore(client int64, f func(st env.Store))
	// Recovered counts a panic and logs its stack. It does not log reason, the panic's value,
	// because that may contain a key.
	Recovered(reason any)
	// CountError counts the error reply e in the statistics of errors. from says where the error
	// comes from.
	CountError(e resp.Error, from resp.Origin)

	// Run runs the command of c, whose arity and permissions were checked, and counts it. Reject
	// replies with the error e to a command that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// Timed runs f, the rest of a command that has left its event loop, and adds the time that f
	// takes to the duration of the command.
	Timed(c *Call, f func(c *Call))
	// Outside runs f, which may wait for a disk. If the caller is a command in the background, it
	// leaves the store while f runs, so that a goroutine that stops the world does not wait for f;
	// it must hold no locks. For other callers f runs at once, inside the store.
	Outside(c *Call, f func())
	// Durations returns the distribution of the durations of the timed calls of the command with
	// that ID, and the number of all its calls. ClassDurations returns the distribution for all
	// commands of a class.
	Durations(id int) (d stats.Distribution, calls int64)
	ClassDurations(class stats.Class) stats.Distribution
	// ParkExclusive parks the client of c for a command that has to run while no other goroutine is
	// in the store. do is the rest of the command. It runs some time after the caller has passed
	// the result to Enqueue.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith is Enqueue for a command that starts only after need bytes of memory were granted
	// for its reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive implements SCRIPT KILL: it returns the error reply, or "" on success.
	// EndExclusive ends the exclusive command, even if it has written, because the server stops at
	// once, and disconnects all clients except asking.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps all other goroutines out of the store for the rest of the batch. It returns
	// false if another goroutine has stopped the world. The command then must return without
	// effects: it runs again when the world is started.
	StopWorld(c *Call) bool
	// Pump sends the stream p to the client of c after the reply, and the client becomes a replica.
	// A goroutine that has entered the store fills p, so p must not wait for a lock that a
	// goroutine which stops the world may hold.
	Pump(c *Call, p transport.Pump)
	// RunOnCoroutine runs a call of unknown duration with the world stopped. how describes the
	// call, and arg is passed to how.Do. If the call takes long, the client is parked and the call
	// continues on another goroutine. again is true if the call has ended without effects and has
	// to run again from its beginning.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
	// CountRejected counts a call of cmd that the command of c, which runs other commands, was
	// refused.
	CountRejected(c *Call, cmd *Command)

	// Pause delays the commands that halt selects, which is HaltChanges or HaltAll, for d; it
	// extends a pause but never shortens it. Unpause ends the pause.
	Pause(st env.Store, d time.Duration, halt uint32)
	Unpause()
	// Unblock ends the wait of cl, with an error if withError is set, and otherwise as if the wait
	// had reached its timeout. It returns false if cl does not wait or its wait cannot be ended
	// early.
	Unblock(cl *Client, withError bool) bool
	// Statistics returns the statistics of the whole server. ResetStatistics resets them (CONFIG
	// RESETSTAT).
	Statistics() Statistics
	ResetStatistics()
	// Activity returns what the client cl is doing. Any goroutine may call it. NoteCommand records
	// that cl runs cmd, for refusals and log entries that are written before the command ends, when
	// it is recorded anyway.
	Activity(cl *Client) Activity
	NoteCommand(cl *Client, cmd *Command)

	// CountClients returns the number of clients, and how many of them are blocked.
	CountClients() (all, blocked int64)
	// Client returns the client with that ID, or nil. Clients returns all clients in the order of
	// their arrival.
	Client(id int64) *Client
	Clients() []*Client
	// Post queues a message for cl, which is b, or the bytes of f if f is not nil. It returns the
	// step that has to follow, and the memory in bytes that the message takes. Follow does that
	// step: it wakes or disconnects cl. Posted adds the memory to the statistics. Follow and Posted
	// must be called without locks. Push does all three for the message frame.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves the messages that are queued for the client of c into its reply.
	TakeMessages(c *Call)
}
