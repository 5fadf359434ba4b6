package session

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// dispatch runs one command: check that it exists, that this client may run it and
// that it has the right number of words, run it, count it.
func (l *Worker) dispatch(s *Session, a *request) {
	c := &l.ctx
	cmd, args := a.cmd, a.args
	l.Work += command.Units(len(a.args), a.size)
	c.Client, c.Args, c.PolicyKey, c.Failed = &s.Client, args, a.policyKey, false
	if len(args) == 0 {
		c.Cmd = nil
		c.Fail(a.refused)
		l.Server.Rejected(c)
		return
	}
	if cmd == nil {
		l.rejectUnknown(c)
		l.unknown(c)
		return
	}
	if cmd.Sub != nil && len(args) > 1 {
		sub := cmd.Subcommand(args[1])
		if sub == nil {
			l.rejectUnknown(c)
			c.Fail(l.Server.Commands.UnknownSub(cmd, args[1]))
			return
		}
		cmd = sub
	}
	c.Cmd = cmd
	switch {
	case !cmd.ArityOK(len(args)):
		l.reject(c, resp.WrongArity(cmd.Name))
		return
	case cmd.Run == nil: // a container without its subcommand
		l.reject(c, resp.WrongArity(cmd.Name))
		return
	case !s.Admitted() && cmd.Flags&command.FlagNoAuth == 0:
		l.reject(c, resp.ErrNoAuth)
		return
	case !s.User.Load().Rules().Unrestricted && restricted(s, cmd, args) && l.forbidden(c):
		return
	case s.Marks&(command.MarkListening|command.MarkMonitoring|command.MarkReplica) != 0 && l.refuseListener(c):
		return
	case l.Server.Halts.Load() != 0 && halted(c):
		return
	}
	if l.Busy && refuseBusy(c) {
		return
	}
	if a.size > command.MaxKey && cmd.HasLongKey(args) {
		l.reject(c, command.ErrKeyTooLong)
		return
	}
	switch {
	case l.Server.Intercepts(c, a.size):
	case len(args) > cmd.InlineWords && c.WordsLeave(len(args)):
		c.MoveToBackground(runNow)
	default:
		runNow(c)
	}
}

// restricted reports whether a user of s that has restrictions may not be allowed the call.
func restricted(s *Session, cmd *command.Command, args [][]byte) bool {
	return !cmd.SoonAllowed(s.User.Load().Rules(), args)
}

// forbidden rejects what the user of the client may not do.
func (l *Worker) forbidden(c *command.Call) bool {
	in := acl.TopLevel
	if c.Client.Marks&command.MarkQueuing != 0 {
		in = acl.InTransaction
	}
	is, forbidden := c.Forbidden(in, c.Cmd)
	if forbidden {
		l.reject(c, is.Error(c.Client, c.Cmd))
	}
	return forbidden
}

// runNow runs the command, and feeds those who wait for what it may bring.
func runNow(c *command.Call) {
	if c.Cmd.Serves && c.Server.Halts.Load()&command.HaltServing != 0 {
		runServing(c)
		return
	}
	workerOf(c.Worker).run(c)
}

// Run implements [command.Host].
func (e *Engine) Run(c *command.Call) { workerOf(c.Worker).run(c) }

// runServing runs a command that may put elements under a key that somebody waits for.
func runServing(c *command.Call) {
	db := c.Client.Selected()
	c.Refs = c.Refs[:0]
	for i, end, step := c.Cmd.Keys.Range(c.Args); i < end; i += step {
		c.Refs = append(c.Refs, env.KeyRef{DB: db, Key: c.Args[i]})
	}
	c.Lock(c.Refs, nil)
	c.RunLocked(func() { workerOf(c.Worker).run(c) })
}

// run calls the handler and keeps the books. A panic in a handler is answered,
// counted and closes that client; the state it saw was not half-changed, because
// stores change state only when all is decided.
func (l *Worker) run(c *command.Call) {
	cmd := c.Cmd
	if l.Journal != nil && l.refused(c) {
		return
	}
	l.count(cmd)
	l.beginErrors()
	run := l.Server.Handler(c)
	switch untimed := l.untimed(); {
	case l.Server.Halts.Load()&command.HaltMonitor != 0:
		l.runMonitored(c, run)
	case !untimed:
		l.runWeighed(c, run)
	case l.pace == byWork:
		l.runByWork(c, run)
	default:
		run(c)
	}
	l.endErrors(cmd)
}
