package scripting

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/cellserver/cellserver/commands/budget"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// Group returns EVAL, SCRIPT and FUNCTION.
func Group() command.Group {
	return command.Group{
		Commands: slices.Concat(commands(), functionCommands()),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			e := newEngine(s)
			return e, command.Hooks{Info: e.info}
		},
		Worker: func(w *command.Worker, slot command.Slot) any {
			k := &worker{engine: slot.OfServer(w.Server).(*engine)}
			k.host.w.OnError, k.host.w.Most = w.OnError, command.MaxScriptReply
			return k
		},
	}
}

// engine is what the group keeps for the server: the scripts that are known, and the
// states that run them.
type engine struct {
	server  *command.Server
	scripts scriptCache
	runs    *lua.Pool
	tidy    tidy
}

func newEngine(s *command.Server) *engine {
	e := &engine{server: s}
	e.runs = lua.NewPool(e.limits())
	return e
}

// info adds what INFO says.
func (e *engine) info(i *command.Info) {
	n, bytes := e.scripts.size()
	i.Scripts, i.ScriptBytes, i.EvictedScripts = int64(n), bytes, e.scripts.evicted.Load()
}

// worker is what the group keeps for a worker.
type worker struct {
	engine *engine
	host   host
	last   scriptMemo
	call   invocation // of the coroutine that the worker is
}

// scriptsOf is what the group of the running command, which is this one, keeps for the
// worker.
func scriptsOf(c *command.Call) *worker { return command.Scratch[worker](c) }

func commands() []*command.Command {
	const flags = command.FlagNoScript | command.FlagStale | command.FlagMovableKeys
	run := func(name string, f command.Flag, syntax, summary string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: -3, Flags: flags | f, Keys: command.KeySpec{Find: scriptKeys}, Categories: command.CatScripting, Group: "scripting",
			Summary: summary, Syntax: syntax, Since: "1.0.0", Complexity: "Depends on the script.",
			Reply: "what the script returns", Run: run,
			Writes: mayChange, Plan: plan,
		}
	}
	const bySource, bySHA = "script numkeys [key [key ...]] [arg [arg ...]]", "sha1 numkeys [key [key ...]] [arg [arg ...]]"
	return []*command.Command{
		run("eval", 0, bySource, "Runs a Lua script at one instant.", eval),
		run("eval_ro", command.FlagReadonly, bySource, "Runs a Lua script that may not write.", eval),
		run("evalsha", 0, bySHA, "Runs a loaded Lua script.", evalSHA),
		run("evalsha_ro", command.FlagReadonly, bySHA, "Runs a loaded Lua script that may not write.", evalSHA),
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
			sub("exists", -3, 0, "sha1 [sha1 ...]", "Returns which scripts are loaded.", "an array of 1 and 0", scriptExists),
			sub("flush", -2, command.FlagAudit, "[ASYNC | SYNC]", "Forgets all scripts.", "OK", scriptFlush),
			sub("kill", 2, command.FlagAllowBusy|command.FlagAudit, "", "Stops the running script, unless it has written.", "OK, or an error", scriptKill),
			sub("debug", 3, 0, "<YES | SYNC | NO>", "Replies that scripts cannot be debugged.", "an error",
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

// invocation is one call of a script.
type invocation struct {
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
	k, source := scriptsOf(c), c.Args[1]
	s := k.scriptOf(source)
	if s == nil && len(source) > compileInline && !c.Client.Exclusive {
		evalElsewhere(c, n)
		return
	}
	if s == nil {
		if s, err = k.engine.compile(source, false); err != "" {
			c.Fail(err)
			return
		}
	}
	callScript(c, k, s, n)
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
	k := scriptsOf(c)
	s := k.script(sha)
	if s == nil {
		c.Fail(errNoScript)
		return
	}
	callScript(c, k, s, n)
}

// callScript runs s with the first n arguments as keys, here or where it delays nobody.
func callScript(c *command.Call, k *worker, s *script, n int) {
	call := invocation{script: s, keys: c.Args[3 : 3+n], args: c.Args[3+n:], readonly: c.Cmd.Flags&command.FlagReadonly != 0}
	if err := call.refused(c); err != "" {
		c.Fail(err)
		return
	}
	switch {
	case c.Client.Exclusive && c.Exclusive != nil:
		runScript(c, &call)
	case s.Straight(len(c.Args) - 3):
		runStraight(c, &call)
	case c.Client.Exclusive: // it has come since EXEC looked for it
		c.Fail(errNoScript)
	default:
		k.call = call
		runOnCoroutine(c, k)
	}
}

// runStraight runs a script that ends soon, unless it has to wait for memory.
func runStraight(c *command.Call, call *invocation) {
	if need := reserve(c, call); need > 0 {
		runLater(c, call, need)
		return
	}
	defer call.end()
	if runScript(c, call); c.Again {
		c.Again = false
		runLater(c, call, c.Server.LargeRoom())
	}
}

// scriptCoroutine is how scripts run of which nobody knows how long they take.
var scriptCoroutine = command.Coroutine{
	Do: func(c *command.Call, arg any) {
		call := &scriptsOf(c).call
		*call = *arg.(*invocation) // which the loop may use again once the script has yielded
		call.keys, call.args = c.Args[3:3+len(call.keys)], c.Args[3+len(call.keys):]
		defer call.end()
		runScript(c, call)
		c.Work += scriptsOf(c).host.spent / instructionsPerWork
	},
	Script: func(w *command.Worker) (command.Killable, bool) {
		h := w.Script.(*host)
		return h.run, h.wrote
	},
	Again: func(c *command.Call) func(c *command.Call) {
		return again(c.Cmd, command.CloneArgs(c.Args), &scriptsOf(c).call)
	},
}

// runOnCoroutine runs the call of k, at once if it ends soon.
func runOnCoroutine(c *command.Call, k *worker) {
	if !c.Server.Host.StopWorld(c) {
		return
	}
	if need := reserve(c, &k.call); need > 0 {
		runLater(c, &k.call, need)
		return
	}
	if c.Server.Host.RunOnCoroutine(c, &scriptCoroutine, &k.call) {
		runLater(c, &k.call, c.Server.LargeRoom())
	}
}

// end gives back what was asked for and is not needed.
func (call *invocation) end() {
	call.memory.End()
	call.memory = nil
}

// refused says why a call may not even begin. A script that declares nothing finds out when
// it writes.
func (call *invocation) refused(c *command.Call) resp.Error {
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
func (k *worker) scriptOf(source []byte) *script {
	if len(source) > lua.MaxSource {
		return nil
	}
	return k.script(shaOf(source))
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
func (e *engine) compile(source []byte, loaded bool) (*script, resp.Error) {
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
	s.confined = confines(e.server.Commands, compiled)
	return e.scripts.add(s, loaded)
}

// evalElsewhere compiles on a goroutine, and then runs the script exclusively, since its
// session waits anyway.
func evalElsewhere(c *command.Call, n int) {
	e, host, cmd, own := scriptsOf(c).engine, c.Server.Host, c.Cmd, command.CloneArgs(c.Args)
	x := host.ParkExclusive(c, nil)
	x.Wait.Work(func(command.Store) {
		s, err := e.compile(own[1], false)
		call := invocation{script: s, keys: own[3 : 3+n], args: own[3+n:], readonly: cmd.Flags&command.FlagReadonly != 0}
		x.Do = func(c *command.Call) {
			c.Cmd, c.Args = cmd, own
			if err == "" {
				err = call.refused(c)
			}
			if err != "" {
				c.Fail(err)
				return
			}
			runScript(c, &call)
		}
		host.Enqueue(x)
	})
}

func scriptLoad(c *command.Call) {
	k, source := scriptsOf(c), c.Args[2]
	load := func(w *resp.Writer, source []byte) {
		s, err := k.engine.compile(source, true)
		if err != "" {
			w.Error(err)
			return
		}
		w.Bulk(s.sha[:])
	}
	if len(source) <= compileInline || k.scriptOf(source) != nil {
		load(c.W, source)
		return
	}
	source = append([]byte(nil), source...)
	c.Offload(func(_ command.Store, w *resp.Writer) { load(w, source) })
}

// scriptKill is SCRIPT KILL.
func scriptKill(c *command.Call) {
	if err := c.Server.Host.KillExclusive(c); err != "" {
		c.Fail(err)
		return
	}
	c.OK()
}

func scriptExists(c *command.Call) {
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		found := int64(0)
		if sha, ok := parseSHA(name); ok && scriptsOf(c).engine.scripts.get(sha) != nil {
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
	scriptsOf(c).engine.scripts.flush()
	c.OK()
}
