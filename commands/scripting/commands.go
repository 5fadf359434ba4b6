package scripting

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

func commands() []*command.Command {
	const flags = command.FlagNoScript | command.FlagStale | command.FlagMovableKeys

	const bySource, bySHA = "script numkeys [key [key ...]] [arg [arg ...]]", "sha1 numkeys [key [key ...]] [arg [arg ...]]"
	return command.Entries(command.Defaults{
		Keys: command.KeySpec{Count: 2}, Categories: command.CatScripting, Group: "scripting", Since: "1.0.0",
		Complexity: "Depends on the script.",
	}, []*command.Command{
		{
			Name: "eval", Arity: -3, Flags: flags,
			Summary: "Runs a Lua script at one instant.", Syntax: bySource, Reply: "what the script returns", Run: eval,
			Writes: mayChange(asText), Plan: plan(asText),
		},
		{
			Name: "eval_ro", Arity: -3, Flags: flags | command.FlagReadonly,
			Summary: "Runs a Lua script that may not write.", Syntax: bySource, Reply: "what the script returns", Run: eval,
			Writes: mayChange(asText), Plan: plan(asText),
		},
		{
			Name: "evalsha", Arity: -3, Flags: flags,
			Summary: "Runs a loaded Lua script.", Syntax: bySHA, Reply: "what the script returns", Run: evalSHA, Writes: mayChange(asSHA),
			Plan: plan(asSHA),
		},
		{
			Name: "evalsha_ro", Arity: -3, Flags: flags | command.FlagReadonly,
			Summary: "Runs a loaded Lua script that may not write.", Syntax: bySHA, Reply: "what the script returns", Run: evalSHA,
			Writes: mayChange(asSHA), Plan: plan(asSHA),
		},
		scriptContainer(),
	})
}

// scriptContainer returns the command SCRIPT with its subcommands.
func scriptContainer() *command.Command {
	return &command.Command{
		Name: "script", Arity: -2, Group: "scripting", Summary: "A container for Lua scripts management commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{
			Categories: command.CatScripting, Group: "scripting", Since: "1.0.0", Complexity: "O(1)",
		}, []*command.Command{
			{
				Name: "script|load", Arity: 3, Flags: command.FlagNoScript | command.FlagStale,
				Summary: "Compiles a script and keeps it until SCRIPT FLUSH.", Syntax: "script", Reply: "the name of the script, its SHA-1",
				Run: scriptLoad,
			},
			{
				Name: "script|exists", Arity: -3, Flags: command.FlagNoScript,
				Summary: "Returns which scripts are loaded.", Syntax: "sha1 [sha1 ...]", Reply: "an array of 1 and 0", Run: scriptExists,
			},
			{
				Name: "script|flush", Arity: -2, Flags: command.FlagNoScript | command.FlagAudit,
				Summary: "Forgets all scripts.", Syntax: "[ASYNC | SYNC]", Reply: "OK", Run: scriptFlush,
				Disclosure: command.Disclosure{Change: "script"},
			},
			{
				Name: "script|kill", Arity: 2, Flags: command.FlagNoScript | command.FlagAllowBusy | command.FlagAudit,
				Summary: "Stops the running script, unless it has written.", Reply: "OK, or an error", Run: scriptKill,
				Disclosure: command.Disclosure{Change: "script"},
			},
			{
				Name: "script|debug", Arity: 3, Flags: command.FlagNoScript,
				Summary: "Replies that scripts cannot be debugged.", Syntax: "<YES | SYNC | NO>", Reply: "an error",
				Run: func(c *command.Call) { c.Fail("ERR SCRIPT DEBUG is not supported") },
			},
		}),
	}
}

// countScriptKeys returns numkeys, the number of keys in args, the arguments of EVAL or a similar
// command. The error is "" if numkeys is valid and so many arguments follow it.
func countScriptKeys(args [][]byte) (int, resp.Error) {
	if len(args) < 3 {
		return 0, resp.ErrSyntax
	}
	n, ok := arg.Int(args[2])
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

// eval is the Run function of EVAL and EVAL_RO. A long script that is not in the cache is compiled
// on another goroutine, except in a transaction.
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

// evalSHA is the Run function of EVALSHA and EVALSHA_RO. It fails if the cache does not have the
// script.
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

// callScript runs s with the first n arguments after numkeys as its keys. In an exclusive command,
// and for a script of bounded duration, it runs s at once. All other scripts run on a coroutine,
// but not in an ordinary transaction: there the call fails, because the script was added to the
// cache after EXEC had looked for it.
func callScript(c *command.Call, k *worker, s *script, n int) {
	call := invocation{script: s, keys: c.Args[3 : 3+n], args: c.Args[3+n:], readonly: c.Cmd.Flags&command.FlagReadonly != 0}
	if err := call.refused(c); err != "" {
		c.Fail(err)
		return
	}
	switch {
	case c.Client.Exclusive && c.Exclusive != nil:
		k.runScript(c, &call)
	case s.Bounded(len(c.Args) - 3):
		k.runBounded(c, &call)
	case c.Client.Exclusive: // the script was added after EXEC had looked for it
		c.Fail(errNoScript)
	default:
		k.call = call
		k.runOnCoroutine(c)
	}
}

// runBounded runs a script whose duration has a bound. If the script has to wait for memory, before
// or during its run, runBounded parks the session, and the script runs later from its beginning.
func (k *worker) runBounded(c *command.Call, call *invocation) {
	if need := reserve(c, call); need > 0 {
		runLater(c, call, need)
		return
	}
	defer call.end()
	if k.runScript(c, call); c.Again {
		c.Again = false
		runLater(c, call, c.Server.LargeRoom())
	}
}

// scriptCoroutine runs scripts of unknown duration.
var scriptCoroutine = command.Coroutine{
	Do: func(c *command.Call, arg any) {
		k := scriptsOf(c)
		call := &k.call
		*call = *arg.(*invocation) // the call is copied, because the loop may reuse *arg once the script has yielded
		call.keys, call.args = c.Args[3:3+len(call.keys)], c.Args[3+len(call.keys):]
		defer call.end()
		k.runScript(c, call)
		c.Work += k.host.spent / instructionsPerWork
	},
	Script: func(w *command.Worker) (command.Killable, bool) {
		h := w.Script.(*host)
		return h.run, h.wrote
	},
	Again: func(c *command.Call) func(c *command.Call) {
		return again(c.Cmd, command.CloneArgs(c.Args), &scriptsOf(c).call)
	},
}

// runOnCoroutine runs the call in k.call on a coroutine, with the world stopped. A script that ends
// soon has ended when runOnCoroutine returns; otherwise the session is parked. If another goroutine
// has stopped the world, runOnCoroutine returns without an effect, and the command runs again
// later. If the script has to wait for memory, it runs later.
func (k *worker) runOnCoroutine(c *command.Call) {
	if !c.Server.Host.Exclusives.StopWorld(c) {
		return
	}
	if need := reserve(c, &k.call); need > 0 {
		runLater(c, &k.call, need)
		return
	}
	if c.Server.Host.Exclusives.RunOnCoroutine(c, &scriptCoroutine, &k.call) {
		runLater(c, &k.call, c.Server.LargeRoom())
	}
	k.call = invocation{} // the call is dropped, because its arguments refer to the input of the batch
}

// compileInline is the maximum size, in bytes, of a source that is compiled on an event loop.
// Compiling a longer one would delay other clients: a kilobyte takes about 20 µs.
const compileInline = 2 << 10

// evalElsewhere compiles the script of EVAL, which has n keys, on another goroutine while the
// session is parked. Then it runs the script as an exclusive command, since the session is parked
// anyway.
func evalElsewhere(c *command.Call, n int) {
	e, host, cmd, own := scriptsOf(c).engine, &c.Server.Host, c.Cmd, command.CloneArgs(c.Args)
	x := host.Exclusives.ParkExclusive(c, nil)
	x.Wait.Work(func(env.Store) {
		s, err := e.compile(own[1], false)
		call := invocation{script: s, keys: own[3 : 3+n], readonly: cmd.Flags&command.FlagReadonly != 0}
		x.Do = again(cmd, own, &call)
		if err != "" {
			x.Do = func(c *command.Call) {
				c.Cmd, c.Args = cmd, own
				c.Fail(err)
			}
		}
		host.Exclusives.Enqueue(x)
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
	c.Offload(func(_ env.Store, w *resp.Writer) { load(w, source) })
}

// scriptKill is the Run function of SCRIPT KILL. It fails if no script is busy, or if the busy
// script has written.
func scriptKill(c *command.Call) {
	if err := c.Server.Host.Exclusives.KillExclusive(c); err != "" {
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
	if len(c.Args) > 3 || len(c.Args) == 3 && !arg.IsWord(c.Args[2], "SYNC") && !arg.IsWord(c.Args[2], "ASYNC") {
		c.Fail(errFlushMode)
		return
	}
	scriptsOf(c).engine.scripts.flush()
	c.OK()
}
