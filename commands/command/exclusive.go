package command

import (
	"sync"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/resp"
)

// Exclusive is a command that has the store to itself while it runs, since its duration is
// unknown: a script with a loop, or a transaction with such a script. It runs on
// a goroutine of its own; its session is parked, and a proxy acts in it.
type Exclusive struct {
	Wait  *Wait
	Proxy *Client
	// Do is what is left to be done of the command.
	Do func(c *Call)
	// Changes says that a pause of changes is for it, too.
	Changes bool
	// Memory was asked for before it ran; nil if nothing was.
	Memory *budget.Grant
	// Retries is how often it has begun again because memory was short.
	Retries int

	// StopTimer ends what tells that it has been running for long. It is guarded by the
	// queue of the session.
	StopTimer func() bool

	mu      sync.Mutex
	script  Killable // guarded by mu: the script that runs, nil between scripts
	wrote   bool     // guarded by mu: that script has
	begun   bool     // guarded by mu: a script has
	killed  bool     // guarded by mu: by SCRIPT KILL
	aborted bool     // guarded by mu: ended with the server
}

// What SCRIPT KILL answers where it ends nothing, and what a script that is ended says.
const (
	ErrNotBusy    resp.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable resp.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."

	killedByUser   = "Script killed by user with SCRIPT KILL..."
	killedByServer = "Script killed because the server stops..."
)

// Begin notes the script that runs, so that it can be killed.
func (x *Exclusive) Begin(script Killable) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.killed = x.killed && !x.begun // before it began, or else the one before it
	x.script, x.wrote, x.begun = script, false, true
	switch {
	case x.aborted:
		script.Kill(killedByServer)
	case x.killed:
		script.Kill(killedByUser)
	}
}

// Adopt is Begin for a script that has been running elsewhere. Nobody else knows x yet.
func (x *Exclusive) Adopt(script Killable, wrote bool) {
	x.script, x.wrote, x.begun = script, wrote, true
}

// End notes that no script runs any more.
func (x *Exclusive) End() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.script = nil
}

// Write notes that the script is about to write, after which it may not be killed. It
// returns false when it has been killed already.
func (x *Exclusive) Write() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.killed || x.aborted {
		return false
	}
	x.wrote = true
	return true
}

// Kill ends the running script for a client, unless it has written.
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

// Abort ends the running script whatever it has done, and all that come after it in the
// same transaction.
func (x *Exclusive) Abort() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.aborted = true
	if x.script != nil {
		x.script.Kill(killedByServer)
	}
}

// Aborted reports whether what x has done is to be forgotten.
func (x *Exclusive) Aborted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.aborted
}

// ScriptName returns the SHA-1 of the script that runs, "" if none does. Any goroutine may call
// it.
func (x *Exclusive) ScriptName() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.script == nil {
		return ""
	}
	return x.script.Name()
}
