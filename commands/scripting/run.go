package scripting

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

const (
	errScriptUnknown  resp.Error = "ERR Unknown Redis command called from script"
	errScriptArity    resp.Error = "ERR Wrong number of args calling Redis command from script"
	errScriptDenied   resp.Error = "ERR This Redis command is not allowed from script"
	errScriptReadonly resp.Error = "ERR Write commands are not allowed from read-only scripts."
)

const (
	// coroutineBudget is the number of instructions that a script may take on an event loop before
	// it moves to another goroutine. They take about a millisecond.
	coroutineBudget = 20_000
	// instructionsPerWork is the number of instructions that count as one unit of work.
	instructionsPerWork = 4
	// maxBounded is the number of instructions after which a script of bounded duration is killed.
	// It is far more than such a script can take, unless the compiler has a bug.
	maxBounded = 5_000_000
	// keptScriptReply is the maximum size, in bytes, of the reply buffer that a worker keeps.
	keptScriptReply = 64 << 10
	// maxReferred is about the maximum number of values that a script gets as references instead of
	// copies.
	maxReferred = 16 << 10
)

// runScript runs the script of call at one instant. It locks the keys that the script can access,
// and unlocks them at the end. In an exclusive command they are locked already.
func (k *worker) runScript(c *command.Call, call *invocation) {
	k.host.mayWait, c.Again = !c.Client.Exclusive, false
	if c.Client.Exclusive {
		k.execute(c, call)
		return
	}
	if call.script.keysOnly {
		c.Lock(scriptRefs(c, call.keys), nil)
	} else {
		c.LockAll()
	}
	c.RunLocked(func() { k.execute(c, call) })
}

// scriptRefs returns keys in the selected database, in the form that [command.Call.Lock] takes. The
// result is valid until the next command of the worker.
func scriptRefs(c *command.Call, keys [][]byte) []env.KeyRef {
	c.Refs = c.Refs[:0]
	for _, key := range keys {
		c.Refs = append(c.Refs, env.KeyRef{DB: c.Client.Selected(), Key: key})
	}
	return c.Refs
}

// execute runs the script of call and writes its reply. The keys must be locked. At the end it
// restores the fields of c that the commands of the script have overwritten.
func (k *worker) execute(c *command.Call, call *invocation) {
	cmd, args, w, db := c.Cmd, c.Args, c.W, c.Client.Selected()
	h := &k.host
	h.c, h.caller, h.readonly, h.w.Proto = c, cmd, call.readonly, 2
	run := k.engine.runs.Get()
	h.run, h.wrote, h.begun, h.acted, h.referred = run, false, false, false, 0
	if h.full = c.Full() && !call.script.Flags().AllowOOM; !h.full {
		c.Begin()
	}
	switch {
	case c.Exclusive != nil:
		c.Exclusive.Begin(run)
	case c.Yield != nil:
		c.Script = h
		run.PauseAfter(coroutineBudget, c.Yield)
	default:
		run.PauseAfter(maxBounded, nil)
	}
	mark, refs, pieces := len(w.Buf), len(w.Refs), w.Pieces
	if h.memory = call.memory; h.memory == nil && c.Exclusive != nil {
		h.memory = c.Exclusive.Memory
	}
	if h.memory != nil {
		w.Pieces = h.memory
	} else if pieces == nil {
		w.Pieces = &c.Server.Large
	}
	c.Volatile = true
	defer func() { // the deferred function runs also if a command panics
		c.Volatile = false
		w.Pieces, h.memory = pieces, nil
		if c.Exclusive != nil {
			c.Exclusive.End()
		}
		c.Cmd, c.Args, c.W = cmd, args, w
		c.Client.Database.Store(int32(db))
		if h.w.Refs = h.w.Refs[:0]; cap(h.w.Buf) > keptScriptReply || cap(h.w.Refs) > keptScriptReply/shared.RefSize {
			h.w.Buf, h.w.Refs = nil, nil
		}
	}()
	run.Execute(call.script.Script, call.keys, call.args, h, w)
	if c.Exclusive != nil {
		c.Exclusive.End() // End comes before another goroutine reuses the run
	}
	if w.SpillRest(mark); !c.Again {
		call.script.noteResult(copied(w, mark, refs))
	}
	h.run, h.spent = nil, run.Spent()
	k.engine.runs.Put(run)
	c.Failed = len(w.Buf) > mark && w.Buf[mark] == '-'
}

// copied returns the memory, in bytes, that w takes for a reply. Before the reply, w.Buf had mark
// bytes and w.Refs had refs references.
func copied(w *resp.Writer, mark, refs int) int {
	n := len(w.Buf) - mark
	for _, r := range w.Refs[refs:] {
		if r.Counted() {
			n += len(r.Bytes)
		}
	}
	return n
}

// Call implements [lua.Host] for redis.call and redis.pcall: it runs the command args and returns
// its reply, encoded for proto, with references to long values. Until the script writes, it gets
// long values as references, up to maxReferred of them. After that it gets copies, which the
// garbage collector frees when the script drops them: references would accumulate if a script sets
// and reads a value repeatedly.
func (h *host) Call(args [][]byte, proto int) ([]byte, []shared.Ref) {
	c := h.c
	h.w.Buf, h.w.Refs, h.w.Referred, h.w.Proto = h.w.Buf[:0], h.w.Refs[:0], 0, proto
	cmd, err := h.find(args)
	if err != "" {
		h.w.Error(err)
		c.Server.Host.Calls.CountRejected(c, cmd)
		return h.w.Buf, nil
	}
	h.w.Ledger = c.Server.Options.Ledger
	if h.wrote || h.referred > maxReferred {
		h.w.Ledger = nil
	}
	c.Cmd, c.Args, c.W, c.Failed = cmd, args, &h.w, false
	c.Server.Host.Calls.Run(c)
	if h.full && h.wrote && !c.Failed {
		h.full = false // the script may write from now on, and stopping it halfway would be worse
		c.Begin()
	}
	if len(h.w.Buf) > command.MaxScriptReply {
		h.w.Cut(0)
		h.w.Buf = nil
		h.w.Error(command.ErrScriptReply)
	}
	h.referred += len(h.w.Refs)
	return h.w.Buf, h.w.Refs
}

// find returns the command that a script calls with args, and the error if the script may not call
// it. The command is nil if it does not exist. find also records that the script is about to write.
func (h *host) find(args [][]byte) (*command.Command, resp.Error) {
	cmd := h.c.Server.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	switch {
	case cmd == nil:
		return nil, errScriptUnknown
	case !cmd.ArityOK(len(args)), cmd.Run == nil:
		return cmd, errScriptArity
	case cmd.Flags&command.FlagNoScript != 0:
		return cmd, errScriptDenied
	}
	if err := h.forbidden(cmd, args); err != "" {
		return cmd, err
	}
	switch {
	case h.readonly && cmd.Flags&(command.FlagWrite|command.FlagMayReplicate) != 0:
		return cmd, errScriptReadonly
	case h.begun: // as in Redis the script may run to its end, because stopping it halfway would be worse; a change of role takes effect after it
	case h.c.Server.Halts.Load()&command.HaltReplication != 0:
		if err := h.c.HaltedInScript(cmd, args); err != "" {
			return cmd, err
		}
	default:
		h.begun = cmd.Flags&command.FlagWrite != 0
	}
	switch {
	case h.full && cmd.NeedsMemory():
		// Redis refuses this command as well, whatever its keys are. A command of a limiter is
		// allowed here, because it needs memory only for a new key.
		return cmd, resp.ErrOOM
	}
	if err := h.c.Server.Limits().Frame.Check(args); err != "" {
		return cmd, err
	}
	if cmd.HasLongKey(args) {
		return cmd, command.ErrKeyTooLong
	}
	h.acted = h.acted || cmd.Flags&command.FlagReadonly == 0
	if cmd.Flags&command.FlagWrite != 0 {
		h.wrote = true
		if x := h.c.Exclusive; x != nil && !x.Write() {
			return cmd, errScriptDenied // the script has been killed, so this error has no reader
		}
	}
	return cmd, ""
}

// forbidden returns the error if the user of the client may not call cmd with args; "" if the user
// may. It sets c.Cmd and c.Args, and records a refusal in ACL LOG.
func (h *host) forbidden(cmd *command.Command, args [][]byte) resp.Error {
	c := h.c
	if c.Client.User.Load().Rules().Unrestricted {
		return ""
	}
	c.Cmd, c.Args = cmd, args
	if is, forbidden := c.Forbidden(acl.InScript, h.caller); forbidden {
		return resp.Error("NOPERM ACL failure in script: " + is.Text(c.Client, cmd))
	}
	return ""
}

// Allowed implements [lua.Allower] for redis.acl_check_cmd: known says whether the command args[0]
// exists, and allowed whether the user of the client may call it with args.
func (h *host) Allowed(args [][]byte) (known, allowed bool) {
	cmd := h.c.Server.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	if cmd == nil {
		return false, false
	}
	is := cmd.Refused(h.c.Client.User.Load().Rules(), args, h.c.Server.Limits().EveryKey)
	return true, is.Reason == acl.DeniedNothing
}

// Log implements [lua.Host] for redis.log. The message of a script may contain keys, which must not
// be in the log, so only its level and its length in bytes are logged.
func (h *host) Log(level int, msg []byte) {
	h.c.Server.Log.Debug("a script logged a message", "level", level, "bytes", len(msg))
}
