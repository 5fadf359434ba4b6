package command

import (
	"sync"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/resp"
)

// Coroutine describes how a group runs a call of unknown duration. The call runs on a coroutine
// with its own worker, which continues on another goroutine if the call takes long.
type Coroutine struct {
	// Do runs the call. c belongs to the coroutine's worker and has copies of the arguments. arg is
	// the argument of [Exclusives].RunOnCoroutine, and is valid until c yields.
	Do func(c *Call, arg any)
	// Script returns the script that runs on w, the coroutine's worker, and whether the script has
	// written. It is called after the call has yielded.
	Script func(w *Worker) (script Killable, wrote bool)
	// Again returns a function that runs the call of Do once more, from its beginning.
	Again func(c *Call) func(c *Call)
}

// Exclusive is a command that has the store to itself while it runs, because its duration is
// unknown: a script with a loop, or a transaction with such a script. It runs on its own goroutine.
// Meanwhile its session is parked, and Proxy acts as the client.
type Exclusive struct {
	Wait  *Wait
	Proxy *Client
	// Do runs the rest of the command, once no other goroutine is in the store.
	Do func(c *Call)
	// Changes says that CLIENT PAUSE WRITE delays the command.
	Changes bool
	// Memory is the memory that was granted before the command ran; nil if none was requested.
	Memory *budget.Grant
	// Retries is the number of times that the command was restarted for lack of memory.
	Retries int

	// StopTimer stops the timer that reports the command as busy. The mutex of the queue of
	// exclusive commands in package session guards this field.
	StopTimer func() bool

	mu      sync.Mutex
	script  Killable // the running script, nil between scripts; guarded by mu
	wrote   bool     // whether the running script has written; guarded by mu
	begun   bool     // whether a script has begun; guarded by mu
	killed  bool     // whether SCRIPT KILL has ended the running script, or has to end the first one; guarded by mu
	aborted bool     // whether the command was ended because the server stops; guarded by mu
}

// ErrNotBusy and errUnkillable are the replies of SCRIPT KILL when it ends nothing. killedByUser
// and killedByServer are the reasons that an ended script reports.
const (
	ErrNotBusy    resp.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable resp.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."

	killedByUser   = "Script killed by user with SCRIPT KILL..."
	killedByServer = "Script killed because the server stops..."
)

// Begin records script as the running one, so that it can be killed. If SCRIPT KILL came before the
// first script of x, or the server is stopping, Begin kills the script at once.
func (x *Exclusive) Begin(script Killable) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.killed = x.killed && !x.begun // keeps a kill from before the first script, and drops one of an earlier script
	x.script, x.wrote, x.begun = script, false, true
	switch {
	case x.aborted:
		script.Kill(killedByServer)
	case x.killed:
		script.Kill(killedByUser)
	}
}

// BeginRunning is Begin for a script that already runs on a coroutine. wrote is whether the script
// has written. BeginRunning takes no lock, so no other goroutine may have x yet.
func (x *Exclusive) BeginRunning(script Killable, wrote bool) {
	x.script, x.wrote, x.begun = script, wrote, true
}

// End records that no script is running.
func (x *Exclusive) End() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.script = nil
}

// Write records that the script is about to write: from then on SCRIPT KILL may not end it. Write
// returns false if the script has already been killed; then it must not write.
func (x *Exclusive) Write() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.killed || x.aborted {
		return false
	}
	x.wrote = true
	return true
}

// Kill implements SCRIPT KILL. It ends the running script, or the next one if none has begun,
// unless the script has written. The result is the error reply, or "" on success. Any goroutine may
// call it.
func (x *Exclusive) Kill() resp.Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.script == nil && x.begun:
		return ErrNotBusy
	case x.wrote:
		return errUnkillable
	}
	x.killed = true
	if x.script != nil {
		x.script.Kill(killedByUser)
	}
	return ""
}

// Abort ends the running script, even if it has written, and every later script of the same
// transaction, because the server stops. Any goroutine may call it.
func (x *Exclusive) Abort() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.aborted = true
	if x.script != nil {
		x.script.Kill(killedByServer)
	}
}

// Aborted reports whether Abort was called: then the effects of x must be discarded.
func (x *Exclusive) Aborted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.aborted
}

// ScriptName returns the SHA-1 of the running script, or "" if there is none. Any goroutine may
// call it.
func (x *Exclusive) ScriptName() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.script == nil {
		return ""
	}
	return x.script.Name()
}

// Exclusives runs the commands that have the store to themselves.
type Exclusives interface {
	// ParkExclusive parks the client of c for a command that has to run while no other goroutine is
	// in the store. do is the rest of the command. It runs some time after the caller has passed
	// the result to Enqueue.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith does what Enqueue does, for a command that starts only after need bytes of memory
	// were granted for its reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive implements SCRIPT KILL: it returns the error reply, or "" on success.
	// EndExclusive ends the exclusive command, even if it has written, because the server stops at
	// once, and disconnects all clients except asking.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps all other goroutines out of the store for the rest of the batch. It returns
	// false if another goroutine has stopped the world already. Then the command must return
	// without effects, and runs again later.
	StopWorld(c *Call) bool
	// RunOnCoroutine runs a call of unknown duration, after the caller has stopped the world by
	// StopWorld. how describes the call, and arg is passed to how.Do. If the call takes long, the
	// client is parked and the call continues on another goroutine. again is true if the call has
	// ended without effects and has to run again from its beginning.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
}
