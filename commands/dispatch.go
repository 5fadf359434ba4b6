package commands

import (
	"runtime/debug"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// dispatch runs one command: check that it exists, that this client may run it and
// that it has the right number of words, run it, count it.
func (l *Lane) dispatch(s *Session, a *ahead) {
	c := &l.ctx
	cmd, args := a.cmd, a.args
	l.work += units(len(a.args), a.size)
	c.Client, c.Args, c.fail = &s.Client, args, false
	if len(args) == 0 {
		c.Cmd = nil
		c.Fail(a.refused)
		s.failTransaction()
		return
	}
	if cmd == nil {
		l.unknown(c)
		s.failTransaction()
		s.endCaching(nil)
		return
	}
	if cmd.Sub != nil && len(args) > 1 {
		sub := cmd.Subcommand(args[1])
		if sub == nil {
			s.failTransaction()
			s.endCaching(nil)
			c.Fail(unknownSubcommand(cmd.Name, args[1]))
			return
		}
		cmd = sub
	}
	c.Cmd = cmd
	switch {
	case !cmd.arityOK(len(args)):
		l.reject(c, resp.WrongArity(cmd.Name))
		return
	case cmd.Run == nil: // a container without its subcommand
		l.reject(c, resp.WrongArity(cmd.Name))
		return
	case !s.admitted() && cmd.Flags&FlagNoAuth == 0:
		l.reject(c, resp.ErrNoAuth)
		return
	case s.listensOnly() && !cmd.listenersMay():
		l.reject(c, errListening(cmd))
		return
	case l.server.halts.Load() != 0 && c.halted():
		return
	}
	if l.busy && c.refuseBusy() {
		return
	}
	if a.size > maxKey && cmd.hasLongKey(args) {
		l.reject(c, errKeyTooLong)
		return
	}
	switch {
	case c.enqueue(a.size):
	case len(args) > cmd.fewWords && c.wordsLeave(len(args)):
		c.moveBeside((*Ctx).runNow)
	default:
		c.runNow()
	}
}

// runNow runs the command, and feeds those who wait for what it may bring.
func (c *Ctx) runNow() {
	if c.Cmd.feeds && c.server.halts.Load()&haltServing != 0 {
		c.runFeeding()
		return
	}
	laneOf(c.Worker).run(c)
}

// errLoading is said in Redis' words.
const errLoading resp.Error = "LOADING Redis is loading the dataset in memory"

const errKeyTooLong resp.Error = "ERR key is too long, at most 16384 bytes"

// hasLongKey reports whether a key among args is longer than a key may be.
func (c *Command) hasLongKey(args [][]byte) bool {
	k := &c.Keys
	if k.Find == nil && k.First > 0 { // as positions, which makes a list
		last := k.Last
		if last < 0 {
			last += len(args)
		}
		for i := k.First; i <= last && i < len(args); i += k.Step {
			if len(args[i]) > maxKey {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(k.positions(args), func(i int) bool { return len(args[i]) > maxKey })
}

// run calls the handler and keeps the books. A panic in a handler is answered,
// counted and closes that client; the state it saw was not half-changed, because
// stores change state only when all is decided.
func (l *Lane) run(c *Ctx) {
	cmd := c.Cmd
	if l.journal != nil && l.refused(c) {
		return
	}
	l.count(cmd)
	l.beginErrors()
	run := cmd.Run
	if sessionOf(c.Client).tracks.Load() != nil {
		run = runTracked
	}
	if l.sample--; l.sample > 0 {
		run(c)
	} else {
		l.sample = sampleEvery
		began := l.server.opts.Stopwatch()
		run(c)
		n := &l.counts[cmd.id]
		n.Sampled.Add(int64(l.server.opts.Stopwatch() - began))
		n.Timed.Add(1)
	}
	l.endErrors(cmd)
}

// reject answers a command that never ran. An EXEC that did not ends its
// transaction all the same.
func (l *Lane) reject(c *Ctx, e resp.Error) {
	l.counts[c.Cmd.id].Rejected.Add(1)
	sessionOf(c.Client).failTransaction()
	sessionOf(c.Client).endCaching(c.Cmd)
	if c.Cmd.Name == "exec" {
		sessionOf(c.Client).discardQueue(c.Store)
		e = resp.Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(string(e), "ERR "))
	}
	c.Fail(e)
}

// unknown answers a command that does not exist. A browser that was tricked into
// talking to us sends POST and Host:, and is cut off as in Redis, before the body
// that it carries can be taken for commands.
func (l *Lane) unknown(c *Ctx) {
	if resp.IsCrossProtocol(c.Args[0]) {
		c.Client.closing = true
		l.server.log.Warn("closed a connection that speaks HTTP", "client", c.Client.addr())
		return
	}
	c.Fail(unknownCommand(c.Args))
}

// maxEcho is how much of an unknown name, and of the arguments together, is
// repeated in the error (Redis: 128).
const maxEcho = 128

func unknownCommand(args [][]byte) resp.Error {
	b := append([]byte("ERR unknown command '"), echo(args[0], maxEcho)...)
	b = append(b, "', with args beginning with: "...)
	shown := 0
	for _, a := range args[1:] {
		if shown >= maxEcho {
			break
		}
		a = echo(a, maxEcho-shown)
		b = append(append(append(b, '\''), a...), "' "...)
		shown += len(a) + len("'' ")
	}
	return resp.Error(b)
}

func unknownSubcommand(container string, name []byte) resp.Error {
	return resp.Error("ERR unknown subcommand '" + string(echo(name, maxEcho)) + "'. Try " + upper(container) + " HELP.")
}

// subcommandSyntax is what Redis says of a subcommand with words too many, where it
// counts them itself.
func subcommandSyntax(c *Ctx) resp.Error {
	return resp.Error("ERR unknown subcommand or wrong number of arguments for '" + string(echo(c.Args[1], maxEcho)) +
		"'. Try " + upper(c.Cmd.parent.Name) + " HELP.")
}

// echo returns at most n bytes of b, up to its first NUL, as C prints strings.
func echo(b []byte, n int) []byte {
	if len(b) > n {
		b = b[:n]
	}
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - ('a' - 'A')
		}
	}
	return string(b)
}

// Recovered logs a panic without the values it carried, which may hold a key.
func (e *Engine) Recovered(any) {
	e.panics.Add(1)
	e.log.Error("a command failed on an internal error", "stack", string(debug.Stack()))
}
