package scripting

import (
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
)

// mayChange asks what a script declares, and without that what it is called by.
func mayChange(c *command.Call, cmd *command.Command, args [][]byte) bool {
	k := cmd.Slot().OfWorker(c.Worker).(*worker)
	if f := k.flags(cmd, args); f.Declared {
		return !f.NoWrites
	}
	return cmd.Flags&command.FlagReadonly == 0
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
// take long, since it has to be compiled; of EVALSHA that is an error.
func plan(c *command.Call, cmd *command.Command, args [][]byte) command.Plan {
	k := cmd.Slot().OfWorker(c.Worker).(*worker)
	p := command.Plan{Writes: mayChange(c, cmd, args), AllowOOM: k.flags(cmd, args).AllowOOM}
	s := k.queued(cmd, args)
	if s == nil {
		p.Long = !bySHA(cmd)
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
