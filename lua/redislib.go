package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// commandSteps is the minimum cost of a command, in instructions of the interpreter.
const commandSteps = 16

// redisVersion is the version of Redis whose scripting this package implements. Scripts see it as
// the field REDIS_VERSION of redis.
const redisVersion = "7.0.15"

var redisConstants = map[string]int{
	"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3,
	"REPL_NONE": 0, "REPL_AOF": 1, "REPL_REPLICA": 2, "REPL_SLAVE": 2, "REPL_ALL": 3,
	"REDIS_VERSION_NUM": 0x07000f,
}

const (
	errNoCommand    = "ERR Please specify at least one argument for this redis lib call"
	errArgumentType = "ERR Lua redis lib command arguments must be strings or integers"
	errAllowed      = "ERR Invalid command passed to redis.acl_check_cmd()"
)

// redisLibrary is the library "redis" of a run, which connects a script with its [Host], and the
// library's data for one execution.
type redisLibrary struct {
	sandbox *sandbox.State
	host    Host
	// proto is the protocol version in which the script gets replies, 2 or 3.
	proto int
	// forwarded is the reply of a command that the script returns unchanged, or nil.
	forwarded []byte
	lent      lent
	call      callBuffers
}

func (r *redisLibrary) begin(host Host) {
	r.host, r.proto, r.forwarded = host, 2, nil
	r.lent.bytes = 0
}

// end drops the host and the forwarded reply, and clears the buffers. The references in r.lent are
// released by its own end.
func (r *redisLibrary) end() {
	r.host, r.forwarded = nil, nil
	r.call.forget()
}

// open adds the library to the globals of s. It also adds the hidden functions that rewritten code
// calls instead of redis.call and redis.pcall.
func (r *redisLibrary) open(s *sandbox.State) {
	r.sandbox = s
	redis := s.Add("redis", r.functions())
	for name, n := range redisConstants {
		redis.RawSetString(name, glua.LNumber(n))
	}
	redis.RawSetString("REDIS_VERSION", glua.LString(redisVersion))
	for name, as := range map[string]use{compiler.NameCommand: asValue, compiler.NameForward: asReply, compiler.NameIgnore: asNothing} {
		for member, raise := range map[string]bool{"call": true, "pcall": false} {
			s.Globals.RawSetString(name+member, s.L.NewFunction(func(l *glua.LState) int { return r.command(l, raise, as) }))
		}
	}
}

func (r *redisLibrary) functions() map[string]glua.LGFunction {
	nothing := func(*glua.LState) int { return 0 }
	return map[string]glua.LGFunction{
		"call":               func(l *glua.LState) int { return r.command(l, true, asValue) },
		"pcall":              func(l *glua.LState) int { return r.command(l, false, asValue) },
		"error_reply":        r.errorReply,
		"status_reply":       r.statusReply,
		"sha1hex":            r.sha1hex,
		"log":                r.log,
		"setresp":            r.setresp,
		"set_repl":           r.setRepl,
		"replicate_commands": func(l *glua.LState) int { l.Push(glua.LTrue); return 1 },
		"breakpoint":         func(l *glua.LState) int { l.Push(glua.LFalse); return 1 },
		"debug":              nothing,
		"acl_check_cmd":      r.aclCheck,
	}
}

// callBuffers has the buffers for the arguments of redis.call. Each call reuses them.
type callBuffers struct {
	args    [][]byte
	numbers []byte
}

func (c *callBuffers) forget() {
	clear(c.args)
	c.args = c.args[:0]
	if cap(c.numbers) > 1<<16 || cap(c.args) > 1<<12 {
		*c = callBuffers{}
	}
}

// commandArguments returns the arguments of l as bytes, which are valid until the next call. The
// second result is false if an argument is neither a string nor a number.
func (r *redisLibrary) commandArguments(l *glua.LState) ([][]byte, bool) {
	c := &r.call
	c.args, c.numbers = c.args[:0], c.numbers[:0]
	for i := 1; i <= l.GetTop(); i++ {
		switch v := l.Get(i).(type) {
		case glua.LString:
			c.args = append(c.args, value.Bytes(string(v)))
		case glua.LNumber:
			start := len(c.numbers)
			c.numbers = appendArgument(c.numbers, float64(v))
			c.args = append(c.args, c.numbers[start:len(c.numbers):len(c.numbers)])
		default:
			return nil, false
		}
	}
	return c.args, true
}

// appendArgument appends the number f as Redis 7.2 writes it for redis.call, and returns the
// extended slice.
func appendArgument(b []byte, f float64) []byte {
	if math.IsNaN(f) {
		return value.AppendG(b, f, 17) // AppendG writes the sign of NaN, too
	}
	return resp.AppendDouble(b, f)
}

// use says how a script uses the reply of a command, as far as the compiler can prove it.
type use uint8

const (
	asValue use = iota
	// asReply means that the script returns the reply next. The reply need not become a Lua value
	// if the result would be the same bytes.
	asReply
	// asNothing means that the script does not use the reply, unless it is an error.
	asNothing
)

// command implements redis.call and redis.pcall. If the command fails and raise is true, command
// raises the error; otherwise it returns the error to the script as a table. as is how the script
// uses the reply. Like all functions for scripts, command returns the number of values that it has
// pushed.
func (r *redisLibrary) command(l *glua.LState, raise bool, as use) int {
	if l.GetTop() == 0 {
		return r.refuse(l, errNoCommand, raise)
	}
	args, ok := r.commandArguments(l)
	if !ok {
		return r.refuse(l, errArgumentType, raise)
	}
	r.sandbox.Guard.Stop(l)
	reply, refs := r.host.Call(args, r.proto)
	refs = r.lent.take(refs)
	r.sandbox.Guard.Spend(commandSteps + len(reply)/sandbox.BytesPerStep)
	if len(reply) > 0 && reply[0] == '-' {
		r.sandbox.Guard.Reserve(l, len(reply))
		return r.give(l, commandError(l, string(line(reply[1:]))), raise)
	}
	switch {
	case len(refs) > 0: // the bytes of the reply lack the strings that refs have
	case as == asNothing && plainReply(reply):
		return 0
	case as == asReply && r.proto == 2 && plainReply(reply):
		r.forwarded = reply
		l.Push(glua.LNil)
		return 1
	}
	in := reader{sandbox: r.sandbox, state: l, rest: reply, size: len(reply), refs: refs}
	value, ok := in.value(0)
	if !ok {
		return r.refuse(l, "ERR malformed reply of a command", raise)
	}
	l.Push(value)
	return 1
}

// refuse raises an error with the given text as a table if raise is true, else returns it.
func (r *redisLibrary) refuse(l *glua.LState, text string, raise bool) int {
	return r.give(l, errorTable(l, text), raise)
}

func (r *redisLibrary) give(l *glua.LState, t *glua.LTable, raise bool) int {
	if raise {
		l.Error(t, 0)
		return 0
	}
	l.Push(t)
	return 1
}

// errorReply implements redis.error_reply. It adds the code ERR to a text that has no code.
func (r *redisLibrary) errorReply(l *glua.LState) int {
	text, ok := l.Get(1).(glua.LString)
	if !ok || l.GetTop() != 1 {
		l.Push(errorTable(l, "ERR wrong number or type of arguments"))
		return 1
	}
	r.sandbox.Guard.Announce(l, len(text))
	l.Push(errorTable(l, errorText(strings.TrimPrefix(string(text), "-"))))
	return 1
}

func (r *redisLibrary) statusReply(l *glua.LState) int {
	text, ok := l.Get(1).(glua.LString)
	if !ok || l.GetTop() != 1 {
		l.Push(errorTable(l, "ERR wrong number or type of arguments"))
		return 1
	}
	t := l.CreateTable(0, 1)
	t.RawSetString("ok", text)
	l.Push(t)
	return 1
}

func (r *redisLibrary) sha1hex(l *glua.LState) int {
	if l.GetTop() != 1 {
		return r.refuse(l, "ERR wrong number of arguments", true)
	}
	text, _ := value.Text(l.Get(1))
	r.sandbox.Guard.Step(l, len(text)/32)
	sum := sha1.Sum(value.Bytes(text))
	l.Push(glua.LString(hex.EncodeToString(sum[:])))
	return 1
}

func (r *redisLibrary) log(l *glua.LState) int {
	if l.GetTop() < 2 {
		return r.refuse(l, "ERR redis.log() requires two arguments or more.", true)
	}
	level, ok := value.ToNumber(l.Get(1))
	if !ok {
		return r.refuse(l, "ERR First argument must be a number (log level).", true)
	}
	if level < 0 || level > 3 {
		return r.refuse(l, "ERR Invalid debug level.", true)
	}
	var message []byte
	first := true
	for i := 2; i <= l.GetTop() && len(message) <= maxLogLine; i++ {
		if text, ok := value.Text(l.Get(i)); ok {
			if !first {
				message = append(message, ' ')
			}
			first = false
			message = append(message, text[:min(len(text), maxLogLine)]...)
		}
	}
	r.host.Log(int(level), message[:min(len(message), maxLogLine)])
	return 0
}

// maxLogLine is the length in bytes at which Redis cuts a line of its log.
const maxLogLine = 1024

func (r *redisLibrary) setresp(l *glua.LState) int {
	if l.GetTop() != 1 {
		return r.refuse(l, "ERR redis.setresp() requires one argument.", true)
	}
	proto, _ := value.ToNumber(l.Get(1))
	if proto != 2 && proto != 3 {
		return r.refuse(l, "ERR RESP version must be 2 or 3.", true)
	}
	r.proto = int(proto)
	return 0
}

// setRepl implements redis.set_repl. It only checks the argument, since all effects of a script are
// always recorded.
func (r *redisLibrary) setRepl(l *glua.LState) int {
	if l.GetTop() != 1 {
		return r.refuse(l, "ERR redis.set_repl() requires two arguments.", true)
	}
	if flags, _ := value.ToNumber(l.Get(1)); int64(flags)&^3 != 0 {
		return r.refuse(l, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.", true)
	}
	return 0
}

func (r *redisLibrary) aclCheck(l *glua.LState) int {
	if l.GetTop() == 0 {
		return r.refuse(l, errNoCommand, true)
	}
	args, ok := r.commandArguments(l)
	if !ok {
		return r.refuse(l, "ERR redis.acl_check_cmd() require all arguments to be strings or integers", true)
	}
	known, allowed := true, true
	if host, ok := r.host.(Allower); ok {
		known, allowed = host.Allowed(args)
	}
	if !known {
		return r.refuse(l, errAllowed, true)
	}
	l.Push(glua.LBool(allowed))
	return 1
}
