package lua

import (
	"strconv"
	"strings"
	"sync/atomic"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/libraries"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// Run is a state of the interpreter that executes one script at a time. It belongs to one
// goroutine. Other goroutines may call only Kill and Name.
type Run struct {
	sandbox   sandbox.State
	libraries libraries.Runtime
	inputs    inputs
	redis     redisLibrary
	// last is the script whose main function is main.
	last *Script
	main *glua.LFunction
	// current is the script that is running, or that ran last; nil before the first.
	current atomic.Pointer[Script]

	// running is true during Execute, and remains true if Execute panics.
	running bool
}

func newRun(m *sandbox.Memory) *Run {
	r := &Run{}
	r.sandbox.Open(m)
	r.libraries.Open(&r.sandbox)
	r.redis.open(&r.sandbox)
	return r
}

func (r *Run) reusable() bool {
	return !r.running && r.sandbox.Clean() && r.redis.lent.bytes <= sandbox.LeastMemory
}

func (r *Run) close() {
	r.sandbox.Close()
}

// Execute runs s with KEYS and ARGV set to keys and args, and appends its reply, which may be an
// error, to w in the protocol of w. It writes nothing if the script lacked memory and host, as a
// [Waiter], will run it again. keys and args must not change during the call; Execute does not keep
// them.
func (r *Run) Execute(s *Script, keys, args [][]byte, host Host, w *resp.Writer) {
	if r.current.Load() != s {
		r.current.Store(s)
	}
	r.begin(s, keys, args, host)
	defer r.redis.lent.end() // end releases the references even if a command panics
	l := r.sandbox.L
	l.Push(r.main)
	start := len(w.Buf)
	switch err := r.sandbox.Protect(l, 0, 1, sandbox.ProtectedCall{Top: true}); {
	case err != nil:
		if !r.waits() {
			r.writeFailure(s, err, w)
		}
	case r.redis.forwarded != nil:
		w.Raw(r.redis.forwarded)
	default:
		r.writeResult(l.Get(-1), s, w, start)
	}
	r.end(s)
}

// Name returns the SHA-1 of the script that is running or that ran last, and "" before the first.
// Any goroutine may call it.
func (r *Run) Name() string {
	if s := r.current.Load(); s != nil {
		return s.SHA()
	}
	return ""
}

// PauseAfter makes the next execution call pause once, on its own goroutine, after about the given
// number of instructions. A command counts as 16 instructions or more, and pause is never called
// while a command runs. The execution continues when pause returns. If pause is nil, the script is
// killed instead.
func (r *Run) PauseAfter(instructions int, pause func()) {
	r.sandbox.Guard.PauseAfter(instructions, pause)
}

// Spent returns the approximate number of instructions of the last execution, or of the present
// one.
func (r *Run) Spent() int { return r.sandbox.Guard.Spent() }

// Kill ends the present execution, or the next one, with an error whose text is reason, such as
// "Script killed by user with SCRIPT KILL.", and the position in the script. The script cannot
// catch the error. If Kill is called more than once, the first reason counts. Kill returns at once:
// the execution ends at its next instruction, or after the command for which it waits. Any
// goroutine may call Kill.
func (r *Run) Kill(reason string) { r.sandbox.Guard.Kill(reason) }

// writeResult writes value, the result of the script, after the first start bytes of w.Buf. If the
// result is too large, or the script has been killed, it writes an error instead; if the script
// lacked memory and will be run again, it writes nothing.
func (r *Run) writeResult(value glua.LValue, s *Script, w *resp.Writer, start int) {
	out := r.replier(w, r.redis.proto)
	out.start, out.began, out.root = start, w.Length(), value
	out.value(value, 0)
	if out.failed == "" {
		return
	}
	if w.Cut(start); !r.waits() {
		w.Error(resp.Error("ERR " + out.failed + " script: " + s.SHA()))
	}
}

func (r *Run) replier(w *resp.Writer, proto int) replier {
	return replier{sandbox: &r.sandbox, inputs: &r.inputs, lent: &r.redis.lent, w: w, proto: proto}
}

// waits reports whether the script lacked memory and the host will run it again.
func (r *Run) waits() bool {
	if !r.sandbox.Guard.Lacked() {
		return false
	}
	host, ok := r.redis.host.(Waiter)
	return ok && host.Waits()
}

// begin prepares all data that a script can access. It makes a new main function only if s is not
// the last script.
func (r *Run) begin(s *Script, keys, args [][]byte, host Host) {
	r.running = true
	r.redis.begin(host)
	r.sandbox.Begin()
	r.libraries.Begin()
	if r.last != s {
		r.last, r.main = s, r.sandbox.L.NewFunctionFromProto(s.Proto())
	}
	if !s.PlainKeys() {
		// A script that uses KEYS or ARGV as a value may have changed the table, so it is dropped.
		r.inputs.forget()
	}
	r.inputs.set(&r.sandbox, keys, args)
}

// end discards the data of the execution. Tables that the script may have changed are made anew,
// now or by the next begin.
func (r *Run) end(s *Script) {
	r.sandbox.End()
	r.libraries.End()
	r.redis.end()
	if !s.PlainKeys() {
		r.inputs.forget()
	}
	r.running = false
}

// writeFailure writes the uncaught error err, with its position and the SHA-1 of s. For a killed
// script it writes the reason of the kill.
func (r *Run) writeFailure(s *Script, err error, w *resp.Writer) {
	f := r.sandbox.Failure
	if f.Value == nil {
		f.Value = sandbox.ObjectOf(err)
	}
	text := r.failureText(f.Value)
	if r.sandbox.Guard.Killed() {
		text = "ERR " + r.sandbox.Guard.Why()
	}
	var b strings.Builder
	b.WriteString(text)
	b.WriteString(" script: ")
	b.WriteString(s.SHA())
	source := f.Source
	if source == "" {
		// The position is unknown, because the stack was full.
		source, f.Line = compiler.ChunkName, 1
	}
	if source == compiler.ChunkName {
		source = "@" + compiler.ChunkName
	}
	b.WriteString(", on " + source + ":" + strconv.Itoa(f.Line) + ".")
	table, _ := f.Value.(*glua.LTable)
	writeError(w, resp.Error(b.String()), table)
}

func (r *Run) failureText(v glua.LValue) string {
	table, ok := v.(*glua.LTable)
	if !ok {
		text, ok := value.Text(v)
		if !ok {
			text = v.String()
		}
		return "ERR " + text
	}
	if text, ok := value.Text(table.RawGetString("err")); ok && text != "" {
		return text
	}
	// The table has no field err, for which Redis 7.0 crashes.
	return "ERR unknown error"
}
