package command

import "github.com/cellserver/cellserver/resp"

// What a node answers that may not run a command now, in Redis' words.
const (
	ErrReadOnly    resp.Error = "READONLY You can't write against a read only replica."
	errNoReplicas  resp.Error = "NOREPLICAS Not enough good replicas to write."
	errMasterDown  resp.Error = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	errStaleScript resp.Error = "ERR Can not execute the command on a stale replica"
)

// Halted says why the server as a part of replication refuses a call of cmd, "" if it does not.
// A command that runs others is asked for each of them when it runs them. The words have been
// counted.
func (c *Call) Halted(cmd *Command, args [][]byte) resp.Error {
	switch halts := c.Server.Halts.Load() & HaltStandby; {
	case halts == 0, c.Client.Marks&MarkPrimary != 0:
	case c.Server.changesRefused(halts) != "" && c.alters(cmd, args):
		return c.Server.changesRefused(halts)
	case halts&HaltMasterDown != 0 && cmd.Flags&FlagStale == 0:
		return errMasterDown
	}
	return ""
}

// Halted says why what waited may not change anything now, "" if it may: the server has become a
// replica since, or lacks replicas. It is asked in the store, so that nothing of a command that
// was let through comes behind the change of role. Any goroutine may call it.
func (p *Wait) Halted() resp.Error {
	return p.Client.Server.ChangesRefused()
}

// ChangesRefused says why the server may not change anything now, "" if it may. It is asked in the
// store. Any goroutine may call it.
func (s *Server) ChangesRefused() resp.Error { return s.changesRefused(s.Halts.Load()) }

// changesRefused says why nothing may be changed with those halts, "" if something may. How many
// replicas there are is asked each time, since a link may have ended just now.
func (s *Server) changesRefused(halts uint32) resp.Error {
	switch {
	case halts&HaltReadOnly != 0:
		return ErrReadOnly
	case halts&HaltNoReplicas != 0 && (s.Options.Node == nil || !s.Options.Node.EnoughReplicas()):
		return errNoReplicas
	}
	return ""
}

// HaltedScript is Halted for a script that says that it may write (writes), or that it may run
// while the primary is lost (stale). As in Redis one that says nothing may not do the latter.
func (c *Call) HaltedScript(writes, stale bool) resp.Error {
	switch halts := c.Server.Halts.Load() & HaltStandby; {
	case halts == 0, c.Client.Marks&MarkPrimary != 0:
	case writes && c.Server.changesRefused(halts) != "":
		return c.Server.changesRefused(halts)
	case !stale && halts&HaltMasterDown != 0:
		return errMasterDown
	}
	return ""
}

// HaltedInScript is Halted for what a script calls.
func (c *Call) HaltedInScript(cmd *Command, args [][]byte) resp.Error {
	if c.Server.Halts.Load()&HaltMasterDown != 0 && c.Client.Marks&MarkPrimary == 0 && cmd.Flags&FlagStale == 0 {
		return errStaleScript
	}
	return c.Halted(cmd, args)
}

// changesPolicies reports whether the command changes policies, which are stored without being
// keys: so it has no FlagWrite.
func (c *Command) changesPolicies() bool { return c.Categories&CatPolicy != 0 && c.Writes != nil }

// alters reports whether a call may change what is stored. A limiter that is asked for nothing,
// or only to peek, does not, and a replica may answer it. One whose words are wrong counts as if
// it did: as in Redis that is not looked at before.
func (c *Call) alters(cmd *Command, args [][]byte) bool {
	if cmd.Flags&FlagWrite == 0 {
		return cmd.changesPolicies()
	}
	switch {
	case cmd.Keys.Policy && cmd.Writes != nil:
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
