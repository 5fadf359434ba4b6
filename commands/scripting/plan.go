package scripting

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
)

// source is what the first argument of a command that runs a script is.
type source bool

const (
	asText source = false
	asSHA  source = true
)

// mayChange returns the field Writes of a command that runs a script: whether a call may change
// something depends on the flags of the script or, without flags, on the command.
func mayChange(from source) func(c *command.Call, cmd *command.Command, args [][]byte) bool {
	return func(c *command.Call, cmd *command.Command, args [][]byte) bool {
		return writes(cmd, workerFor(c, cmd).flags(from, args))
	}
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
func (k *worker) flags(from source, args [][]byte) (f lua.Flags) {
	if from == asText {
		return lua.Declared(args[1])
	}
	if sha, ok := parseSHA(args[1]); ok {
		if s := k.script(sha); s != nil {
			f = s.Flags()
		}
	}
	return f
}

// plan returns the field Plan of a command that runs a script. A script that the cache lacks counts as one
// of unknown duration: EVAL has to compile it, and EVALSHA may get one from a SCRIPT LOAD before
// it in the transaction, or of another client meanwhile.
func plan(from source) func(c *command.Call, cmd *command.Command, args [][]byte) command.Plan {
	return func(c *command.Call, cmd *command.Command, args [][]byte) command.Plan {
		k := workerFor(c, cmd)
		f := k.flags(from, args)
		p := command.Plan{Writes: writes(cmd, f), AllowOOM: f.AllowOOM}
		s := k.queued(from, args)
		if s == nil {
			p.Long = true
			return p
		}
		p.Long, p.KeysOnly = !s.Bounded(len(args)-3), s.keysOnly
		return p
	}
}

// queued returns the script of a queued call, or nil if the cache does not have it.
func (k *worker) queued(from source, args [][]byte) *script {
	if from == asText {
		return k.scriptOf(args[1])
	}
	sha, ok := parseSHA(args[1])
	if !ok {
		return nil
	}
	return k.script(sha)
}
