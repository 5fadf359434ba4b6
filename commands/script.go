package commands

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/cellserver/cellserver/commands/budget"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

func scriptingCommands() []*command.Command {
	const flags = command.FlagNoScript | command.FlagStale | command.FlagMovableKeys
	run := func(name string, f command.Flag, syntax, summary string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: -3, Flags: flags | f, Keys: command.KeySpec{Find: scriptKeys}, Categories: command.CatScripting, Group: "scripting",
			Summary: summary, Syntax: syntax, Since: "1.0.0", Complexity: "Depends on the script.",
			Reply: "what the script returns", Run: run,
			Writes: func(c *command.Call, cmd *command.Command, args [][]byte) bool {
				return laneOf(c.Worker).scriptMayChange(cmd, args)
			},
		}
	}
	const bySource, bySHA = "script numkeys [key [key ...]] [arg [arg ...]]", "sha1 numkeys [key [key ...]] [arg [arg ...]]"
	return []*command.Command{
		run("eval", 0, bySource, "Runs a Lua script at one instant.", eval),
		run("eval_ro", command.FlagReadonly, bySource, "Runs a Lua script that may not write.", eval),
		run("evalsha", 0, bySHA, "Runs a Lua script that the server has.", evalSHA),
		run("evalsha_ro", command.FlagReadonly, bySHA, "Runs a Lua script that the server has and that may not write.", evalSHA),
		scriptContainer(),
	}
}

// scriptContainer is SCRIPT with its subcommands.
func scriptContainer() *command.Command {
	sub := func(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		cmd := command.Subcommand("script", name, arity, command.FlagNoScript|f, syntax, summary, reply, run)
		cmd.Categories, cmd.Group = command.CatScripting, "scripting"
		return cmd
	}
	return &command.Command{
		Name: "script", Arity: -2, Group: "scripting", Summary: "A container for Lua scripts management commands.", Since: "1.0.0",
		Sub: []*command.Command{
			sub("load", 3, command.FlagStale, "script", "Compiles a script and keeps it until SCRIPT FLUSH.", "the name of the script, its SHA-1", scriptLoad),
			sub("exists", -3, 0, "sha1 [sha1 ...]", "Says which scripts the server has.", "an array of 1 and 0", scriptExists),
			sub("flush", -2, command.FlagAudit, "[ASYNC | SYNC]", "Forgets all scripts.", "OK", scriptFlush),
			sub("kill", 2, command.FlagAllowBusy|command.FlagAudit, "", "Ends the running script, unless it has written.", "OK, or an error", scriptKill),
			sub("debug", 3, 0, "<YES | SYNC | NO>", "Says that scripts cannot be debugged here.", "an error",
				func(c *command.Call) { c.Fail("ERR SCRIPT DEBUG is not supported") }),
		},
	}
}

const (
	errNoScript     resp.Error = "NOSCRIPT No matching script. Please use EVAL."
	errNegativeKeys resp.Error = "ERR Number of keys can't be negative"
	errFlushMode    resp.Error = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errReadonlyCall resp.Error = "ERR Can not execute a script with write flag using *_ro command."
	errSourceLong   resp.Error = "ERR Error compiling script (new function): user_script: the script is too long, at most 65536 bytes"
)

// scriptKeys finds the keys of EVAL and its kin for COMMAND GETKEYS and for
// transactions.
func scriptKeys(args [][]byte) ([]int, bool) {
	n, err := countScriptKeys(args)
	if err != "" || n == 0 {
		return nil, false
	}
	at := make([]int, n)
	for i := range at {
		at[i] = i + 3
	}
	return at, true
}

// countScriptKeys reads numkeys.
func countScriptKeys(args [][]byte) (int, resp.Error) {
	if len(args) < 3 {
		return 0, resp.ErrSyntax
	}
	n, ok := parse.Int(args[2])
	switch {
	case !ok:
		return 0, resp.ErrNotInteger
	case n > int64(len(args)-3):
		return 0, resp.ErrNumkeysArgs
	case n < 0:
		return 0, errNegativeKeys
	}
	return int(n), ""
}

// scriptCall is one call of a script.
type scriptCall struct {
	script     *script
	keys, args [][]byte
	readonly   bool
	memory     *budget.Grant // of its result, if that was asked for; who runs it ends that
}

// eval is EVAL and EVAL_RO.
func eval(c *command.Call) {
	n, err := countScriptKeys(c.Args)
	if err != "" {
		c.Fail(err)
		return
	}
	source := c.Args[1]
	s := laneOf(c.Worker).scriptOf(source)
	if s == nil && len(source) > compileInline && !c.Client.Exclusive {
		evalBeside(c, n)
		return
	}
	if s == nil {
		if s, err = engineOf(c.Server).compile(source, false); err != "" {
			c.Fail(err)
			return
		}
	}
	callScript(c, s, n)
}

// evalSHA is EVALSHA and EVALSHA_RO.
func evalSHA(c *command.Call) {
	sha, ok := parseSHA(c.Args[1])
	if !ok {
		c.Fail(errNoScript)
		return
	}
	n, err := countScriptKeys(c.Args)
	if err != "" {
		c.Fail(err)
		return
	}
	s := laneOf(c.Worker).script(sha)
	if s == nil {
		c.Fail(errNoScript)
		return
	}
	callScript(c, s, n)
}

// callScript runs s with the first n arguments as keys, here or where it delays
// nobody.
func callScript(c *command.Call, s *script, n int) {
	call := scriptCall{script: s, keys: c.Args[3 : 3+n], args: c.Args[3+n:], readonly: c.Cmd.Flags&command.FlagReadonly != 0}
	if err := refuses(c, &call); err != "" {
		c.Fail(err)
		return
	}
	switch {
	case c.Client.Exclusive && laneOf(c.Worker).host.alone != nil:
		runScript(c, &call)
		return
	case s.Straight(len(c.Args) - 3):
		runStraight(c, &call, n)
		return
	case c.Client.Exclusive: // it has come since EXEC looked for it
		c.Fail(errNoScript)
		return
	}
	runAside(c, &call, n)
}

// runStraight runs a script that ends soon, unless it has to wait for memory.
func runStraight(c *command.Call, call *scriptCall, n int) {
	if need := reserve(c, call); need > 0 {
		runLater(c, call, n, need)
		return
	}
	defer call.end()
	if runScript(c, call); laneOf(c.Worker).host.waits {
		runLater(c, call, n, largeRoom(c.Server))
	}
}

// end gives back what was asked for and is not needed.
func (call *scriptCall) end() {
	call.memory.End()
	call.memory = nil
}

// refuses says why a call may not even begin. A script that declares nothing finds out
// when it writes.
func refuses(c *command.Call, call *scriptCall) resp.Error {
	f := call.script.Flags()
	if f.Declared && !f.NoWrites {
		switch {
		case c.Journal != nil && c.Journal.Refuses():
			return c.Refusal()
		case call.readonly:
			return errReadonlyCall
		case !f.AllowOOM && c.Store.Full():
			return resp.ErrOOM
		}
	}
	call.readonly = call.readonly || f.NoWrites
	return ""
}

// compileInline is how much source is compiled where the command is run; more would
// delay others. Compiling a kilobyte takes some 20 µs.
const compileInline = 2 << 10

// scriptOf returns the script of that source if the cache has it.
func (l *Lane) scriptOf(source []byte) *script {
	if len(source) > lua.MaxSource {
		return nil
	}
	return l.script(shaOf(source))
}

// shaOf is the name of a script.
func shaOf(source []byte) (sha scriptSHA) {
	sum := sha1.Sum(source)
	hex.Encode(sha[:], sum[:])
	return sha
}

// compile returns the script of source, which it copies, and keeps it in the cache.
// One that is there already costs no more than its name: clients load all their
// scripts whenever they connect.
func (e *Engine) compile(source []byte, loaded bool) (*script, resp.Error) {
	if len(source) > lua.MaxSource {
		return nil, errSourceLong
	}
	sha := shaOf(source)
	if s := e.scripts.get(sha); s != nil {
		return e.scripts.add(s, loaded)
	}
	compiled, err := lua.Compile(source)
	if err != nil {
		return nil, resp.Error(err.Error())
	}
	s := &script{Script: compiled, sha: sha, cost: scriptCost + int64(compiled.Size())}
	s.confined = confines(e.Commands, compiled)
	return e.scripts.add(s, loaded)
}

// evalBeside compiles beside the loops, and then runs the script where it is alone,
// since its session waits anyway.
func evalBeside(c *command.Call, n int) {
	e, cmd, own := engineOf(c.Server), c.Cmd, command.CloneArgs(c.Args)
	a := parkAlone(c, nil)
	a.parked.Work(func(command.Store) {
		s, err := e.compile(own[1], false)
		call := scriptCall{script: s, keys: own[3 : 3+n], args: own[3+n:], readonly: cmd.Flags&command.FlagReadonly != 0}
		a.do = func(c *command.Call) {
			c.Cmd, c.Args = cmd, own
			if err == "" {
				err = refuses(c, &call)
			}
			if err != "" {
				c.Fail(err)
				return
			}
			runScript(c, &call)
		}
		e.enqueueAlone(a)
	})
}

func scriptLoad(c *command.Call) {
	e, source := engineOf(c.Server), c.Args[2]
	load := func(w *resp.Writer, source []byte) {
		s, err := e.compile(source, true)
		if err != "" {
			w.Error(err)
			return
		}
		w.Bulk(s.sha[:])
	}
	if len(source) <= compileInline || laneOf(c.Worker).scriptOf(source) != nil {
		load(c.W, source)
		return
	}
	source = append([]byte(nil), source...)
	c.Offload(func(_ command.Store, w *resp.Writer) { load(w, source) })
}

func scriptExists(c *command.Call) {
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		found := int64(0)
		if sha, ok := parseSHA(name); ok && engineOf(c.Server).scripts.get(sha) != nil {
			found = 1
		}
		c.W.Int(found)
	}
}

func scriptFlush(c *command.Call) {
	if len(c.Args) > 3 || len(c.Args) == 3 && !parse.IsWord(c.Args[2], "SYNC") && !parse.IsWord(c.Args[2], "ASYNC") {
		c.Fail(errFlushMode)
		return
	}
	engineOf(c.Server).scripts.flush()
	c.OK()
}
