package scripting

import (
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
)

// mayChange reports whether a call of a script may change something, from the flags of the script
// or, without flags, from the command that calls it.
func mayChange(c *command.Call, cmd *command.Command, args [][]byte) bool {
	return writes(cmd, workerFor(c, cmd).flags(cmd, args))
}

// writes reports whether a script with these flags that cmd calls may change something.
func writes(cmd *command.Command, f lua.Flags) bool {
	if f.Declared {
		return !f.NoWrites
	}
	return cmd.Flags&command.FlagReadonly == 0
}

// workerFor returns the state of the group for the worker that runs c. cmd is a command of the
// group; c may be of another group.
func workerFor(c *command.Call, cmd *command.Command) *worker {
	return cmd.Slot().OfWorker(c.Worker).(*worker)
}

// flags returns the flags that the script of a call declares.
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

// plan returns what a queued call of a script may do. A script that the cache lacks counts as one
// of unknown duration: EVAL has to compile it, and EVALSHA may get one from a SCRIPT LOAD before
// it in the transaction, or of another client meanwhile.
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

// queued returns the script of a queued call, or nil if the cache does not have it.
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
