package command

import (
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// These are the errors of commands that the server's role in replication forbids. The texts are
// those of Redis.
const (
	ErrReadOnly    resp.Error = "READONLY You can't write against a read only replica."
	errNoReplicas  resp.Error = "NOREPLICAS Not enough good replicas to write."
	errMasterDown  resp.Error = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	errStaleScript resp.Error = "ERR Can not execute the command on a stale replica"
)

// Halted returns the error if the server's role in replication forbids the client to call cmd with
// args; "" if not. Commands from the primary are never forbidden. A command that runs other
// commands checks each of them when it runs it. The number of arguments must have been checked.
func (c *Call) Halted(cmd *Command, args [][]byte) resp.Error {
	switch halts := c.Server.Halts.Load() & HaltReplication; {
	case halts == 0, c.Client.Marks&MarkPrimary != 0:
	case c.Server.changesRefused(halts) != "" && c.alters(cmd, args):
		return c.Server.changesRefused(halts)
	case halts&HaltMasterDown != 0 && cmd.Flags&FlagStale == 0:
		return errMasterDown
	}
	return ""
}

// Halted returns the error if a command that waited may not change anything now, because the server
// has become a replica meanwhile or has too few replicas; "" if it may. The caller calls it between
// Enter and Leave of the store, so that no effect of the command follows the change of role. Any
// goroutine may call it.
func (p *Wait) Halted() resp.Error {
	return p.Client.Server.ChangesRefused()
}

// ChangesRefused returns the error if the server's role in replication forbids changes now; "" if
// not. The caller calls it between Enter and Leave of the store. Any goroutine may call it.
func (s *Server) ChangesRefused() resp.Error { return s.changesRefused(s.Halts.Load()) }

// changesRefused returns the error if the halts in the set halts forbid changes; "" if not. It
// counts the replicas at each call, because a link may have ended just now.
func (s *Server) changesRefused(halts uint32) resp.Error {
	switch {
	case halts&HaltReadOnly != 0:
		return ErrReadOnly
	case halts&HaltNoReplicas != 0 && (s.Options.Node == nil || !s.Options.Node.EnoughReplicas()):
		return errNoReplicas
	}
	return ""
}

// HaltedScript is Halted for a script. writes is whether the script declares that it may write.
// stale is whether it declares that it may run while the link to the primary is down. As in Redis,
// a script without declarations may not run while the link is down.
func (c *Call) HaltedScript(writes, stale bool) resp.Error {
	switch halts := c.Server.Halts.Load() & HaltReplication; {
	case halts == 0, c.Client.Marks&MarkPrimary != 0:
	case writes && c.Server.changesRefused(halts) != "":
		return c.Server.changesRefused(halts)
	case !stale && halts&HaltMasterDown != 0:
		return errMasterDown
	}
	return ""
}

// HaltedInScript is Halted for a call of cmd with args by a script. As in Redis, the script gets
// another error than a client if the link to the primary is down.
func (c *Call) HaltedInScript(cmd *Command, args [][]byte) resp.Error {
	if c.Server.Halts.Load()&HaltMasterDown != 0 && c.Client.Marks&MarkPrimary == 0 && cmd.Flags&FlagStale == 0 {
		return errStaleScript
	}
	return c.Halted(cmd, args)
}

// changesPolicies reports whether the command may change policies. Policies are stored but are not
// keys, so these commands do not have FlagWrite.
func (c *Command) changesPolicies() bool { return c.Categories&CatPolicy != 0 && c.Writes != nil }

// alters reports whether a call of cmd with args may change what is stored. A limiter call with
// quantity 0, or one that only peeks, changes nothing, and a replica may answer it. A call with
// wrong arguments counts as a change: Redis does not check arguments before the role either. To
// find out, alters may run the Parse function of cmd, which overwrites the worker's ask.
func (c *Call) alters(cmd *Command, args [][]byte) bool {
	if cmd.Flags&FlagWrite == 0 {
		return cmd.changesPolicies()
	}
	switch {
	case cmd.Keys.Derived != nil && cmd.Writes != nil:
		return cmd.Writes(c, cmd, args)
	case cmd.Parse == nil || c.Collector != nil:
		return true
	}
	running, words := c.Cmd, c.Args
	c.Cmd, c.Args = cmd, args
	err := cmd.Parse(c)
	c.Cmd, c.Args = running, words
	return err != "" || !c.ask.OnlyLooks()
}

// Pauses implements CLIENT PAUSE and CLIENT UNPAUSE.
type Pauses interface {
	// Pause delays the commands that halt selects, which is HaltChanges or HaltAll, for d; it
	// extends a pause but never shortens it. Unpause ends the pause.
	Pause(st env.Store, d time.Duration, halt uint32)
	Unpause()
	// AfterPause delays f until the end of CLIENT PAUSE and returns true; it returns false if there
	// is no pause. If the server stops before the end of the pause, f is called with proceed false:
	// then the command must not run any more. The caller has entered the store.
	AfterPause(f func(proceed bool)) bool
}
