package scripting

import (
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
)

// mayChange asks what a script declares, and without that what it is called by.
func mayChange(c *command.Call, cmd *command.Command, args [][]byte) bool {
	return writes(cmd, workerFor(c, cmd).flags(cmd, args))
}

// writes reports whether a script with these flags, called by cmd, may change something.
func writes(cmd *command.Command, f lua.Flags) bool {
	if f.Declared {
		return !f.NoWrites
	}
	return cmd.Flags&command.FlagReadonly == 0
}

// workerFor is what the group keeps for the worker that runs c, where cmd is one of its
// commands and c may be of another.
func workerFor(c *command.Call, cmd *command.Command) *worker {
	return cmd.Slot().OfWorker(c.Worker).(*worker)
}

// flags returns what the script of a call declares.
func (k *worker) flags(cmd *command.Command, args [][]byte) (f lua.Flags) {
	if !bySHA(cmd) {
		return lua.Declared(args[1])
	}
	if sha, ok := parseSHA(args[1]); ok {
		if s := k.script(sha); s != nil {
			f = s.Flags()
		}
	}
	return f
}

// bySHA reports whether cmd is EVALSHA or EVALSHA_RO.
func bySHA(cmd *command.Command) bool { return strings.HasPrefix(cmd.Name, "evalsha") }

// plan says what a queued call of a script may do. One that the server does not have yet may
// take long: EVAL has to compile it, and a SCRIPT LOAD before EVALSHA in the same transaction, or of
// another client meanwhile, may bring one of which nothing is known.
func plan(c *command.Call, cmd *command.Command, args [][]byte) command.Plan {
	k := workerFor(c, cmd)
	f := k.flags(cmd, args)
	p := command.Plan{Writes: writes(cmd, f), AllowOOM: f.AllowOOM}
	s := k.queued(cmd, args)
	if s == nil {
		p.Long = true
		return p
	}
	p.Long, p.KeysOnly = !s.Bounded(len(args)-3), s.keysOnly
	return p
}

// queued returns the script that a queued call will run, or nil if the server does not have
// it yet.
func (k *worker) queued(cmd *command.Command, args [][]byte) *script {
	if !bySHA(cmd) {
		return k.scriptOf(args[1])
	}
	sha, ok := parseSHA(args[1])
	if !ok {
		return nil
	}
	return k.script(sha)
}
