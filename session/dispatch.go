package session

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// dispatch runs the command a of s: it checks the command's existence and arity, the client's
// permission, and the state of the server, and then runs and counts the command, or moves it to
// the background. If a check fails, dispatch replies with an error. If a pause delays the
// command, dispatch parks the session.
func (w *Worker) dispatch(s *Session, a *request) {
	c := &w.ctx
	cmd, args := a.cmd, a.args
	w.Work += command.Units(len(a.args), a.size)
	c.Client, c.Args, c.DerivedKey, c.Failed = &s.Client, args, a.derivedKey, false
	if len(args) == 0 {
		c.Cmd = nil
		c.Fail(a.refused)
		w.Server.Rejected(c)
		return
	}
	if cmd == nil {
		w.rejectUnknown(c)
		w.unknown(c)
		return
	}
	if cmd.Sub != nil && len(args) > 1 {
		sub := cmd.Subcommand(args[1])
		if sub == nil {
			w.rejectUnknown(c)
			c.Fail(w.Server.Commands.UnknownSub(cmd, args[1]))
			return
		}
		cmd = sub
	}
	c.Cmd = cmd
	switch {
	case !cmd.ArityOK(len(args)):
		w.reject(c, resp.WrongArity(cmd.Name))
		return
	case cmd.Run == nil: // the command is a container without its subcommand
		w.reject(c, resp.WrongArity(cmd.Name))
		return
	case !s.Admitted() && cmd.Flags&command.FlagNoAuth == 0:
		w.reject(c, resp.ErrNoAuth)
		return
	case !s.User.Load().Rules().Unrestricted && restricted(s, cmd, args) && w.forbidden(c):
		return
	case s.Marks&(command.MarkListening|command.MarkMonitoring|command.MarkReplica) != 0 && w.refuseListener(c):
		return
	case w.Server.Halts.Load() != 0 && halted(c):
		return
	}
	if w.Busy && refuseBusy(c) {
		return
	}
	if a.size > command.MaxKey && cmd.HasLongKey(args) {
		w.reject(c, command.ErrKeyTooLong)
		return
	}
	switch {
	case w.Server.Intercepts(c, a.size):
	case len(args) > cmd.InlineWords && c.WordsLeave(len(args)):
		c.MoveToBackground(runNow)
	default:
		runNow(c)
	}
}

// restricted reports whether a closer check has to decide if the user of s may make the call: the
// user's rules do not simply allow cmd.
func restricted(s *Session, cmd *command.Command, args [][]byte) bool {
	return !cmd.QuickAllowed(s.User.Load().Rules(), args)
}

// forbidden replies with an error to a call that the client's user is not permitted to make, and
// reports whether it did.
func (w *Worker) forbidden(c *command.Call) bool {
	in := acl.TopLevel
	if c.Client.Marks&command.MarkQueuing != 0 {
		in = acl.InTransaction
	}
	is, forbidden := c.Forbidden(in, c.Cmd)
	if forbidden {
		w.reject(c, is.Error(c.Client, c.Cmd))
	}
	return forbidden
}

// runNow runs the command of c. If the command may add elements for which clients wait, runNow
// also serves these clients.
func runNow(c *command.Call) {
	if c.Cmd.Serves && c.Server.Halts.Load()&command.HaltServing != 0 {
		runServing(c)
		return
	}
	workerOf(c.Worker).run(c)
}

// Run implements [command.Calls]: it runs and counts the command of c, whose arity and permissions
// were checked.
func (e *Engine) Run(c *command.Call) { workerOf(c.Worker).run(c) }

// runServing runs a command that may add elements under a key for which clients wait. It locks
// the keys of the command, so that the waiting clients are served before another command sees the
// elements.
func runServing(c *command.Call) {
	db := c.Client.Selected()
	c.Refs = c.Refs[:0]
	for i, end, step := c.Cmd.Keys.Range(c.Args); i < end; i += step {
		c.Refs = append(c.Refs, env.KeyRef{DB: db, Key: c.Args[i]})
	}
	c.Lock(c.Refs, nil)
	c.RunLocked(func() { workerOf(c.Worker).run(c) })
}

// run calls the handler of the command, counts the call and, if it is due, measures its time. Some
// commands are refused instead if their effect could not be persisted: see refused. A panic of the
// handler leaves the state consistent, because stores change it only after everything is decided.
// batch, and the functions that run commands on other goroutines, recover from the panic, reply
// with an error, and close the client.
func (w *Worker) run(c *command.Call) {
	cmd := c.Cmd
	if w.Journal != nil && w.refused(c) {
		return
	}
	w.count(cmd)
	w.beginErrors()
	run := w.Server.Handler(c)
	switch untimed := w.untimed(); {
	case w.Server.Halts.Load()&command.HaltMonitor != 0:
		w.runMonitored(c, run)
	case !untimed:
		w.runWeighed(c, run)
	case w.pace == byWork:
		w.runByWork(c, run)
	default:
		run(c)
	}
	w.endErrors(cmd)
}
