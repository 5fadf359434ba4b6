package scripting

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/lua"
)

// source says what the first argument of a command that runs a script is: its text or its SHA-1.
type source bool

const (
	asText source = false
	asSHA  source = true
)

// mayChange returns the Writes function of a command that runs a script. A call may change
// something unless the script declares that it does not write or, if the script declares no flags,
// the command is read-only.
func mayChange(from source) func(c *command.Call, cmd *command.Command, args [][]byte) bool {
	return func(c *command.Call, cmd *command.Command, args [][]byte) bool {
		return writes(cmd, workerFor(c, cmd).flags(from, args))
	}
}

// writes reports whether a script that declares the flags f and is run by cmd may change something.
func writes(cmd *command.Command, f lua.Flags) bool {
	if f.Declared {
		return !f.NoWrites
	}
	return cmd.Flags&command.FlagReadonly == 0
}

// workerFor returns the group's state of the worker that runs c. cmd is a command of this group; c
// may be a call of another group.
func workerFor(c *command.Call, cmd *command.Command) *worker {
	return cmd.Slot().OfWorker(c.Worker).(*worker)
}

// flags returns the flags that the script of a call with args declares. They are empty if the
// script is unknown.
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

// plan returns the Plan function of a command that runs a script. A script that is not in the cache
// counts as one of unknown duration: EVAL has to compile it, and for EVALSHA it may yet be loaded,
// by a SCRIPT LOAD before it in the transaction or by another client.
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

// queued returns the script of a queued call with args, or nil if it is not in the cache.
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
