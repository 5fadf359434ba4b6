package lua

import (
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/libraries"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// Run is a state that executes one script at a time. Only Kill may be called by
// another goroutine than its owner's.
type Run struct {
	sandbox   sandbox.State
	libraries libraries.Runtime
	inputs    inputs
	// last is the script whose main function main is.
	last *Script
	main *glua.LFunction

	// Of one execution.
	//
	// running catches a panic that went through execute.
	running bool
	host    Host
	proto   int
	// forwarded is the reply of a command that is the script's.
	forwarded []byte
	lent      lent
	call      callBuffers
}

func newRun(m *sandbox.Memory) *Run {
	r := &Run{}
	r.sandbox.Open(m)
	r.libraries.Open(&r.sandbox)
	r.openRedis()
	return r
}

func (r *Run) reusable() bool {
	return !r.running && r.sandbox.Clean() && r.lent.bytes <= sandbox.LeastMemory
}

func (r *Run) close() {
	r.sandbox.Close()
}

func (r *Run) execute(s *Script, keys, args [][]byte, host Host, w *resp.Writer) {
	r.begin(s, keys, args, host)
	defer r.lent.end() // be it that a command panics
	l := r.sandbox.L
	l.Push(r.main)
	start := len(w.Buf)
	switch err := r.sandbox.Protect(l, 0, 1, sandbox.ProtectedCall{Top: true}); {
	case err != nil:
		if !r.waits() {
			r.writeFailure(s, err, w)
		}
	case r.forwarded != nil:
		w.Raw(r.forwarded)
	default:
		r.writeResult(l.Get(-1), s, w, start)
	}
	r.end(s)
}

// writeResult writes what the script returned. A value that is too large, or a
// kill meanwhile, becomes an error in its place.
func (r *Run) writeResult(value glua.LValue, s *Script, w *resp.Writer, start int) {
	out := replier{run: r, w: w, start: start, began: w.Length(), proto: r.proto, root: value}
	out.value(value, 0)
	if out.failed == "" {
		return
	}
	if w.Cut(start); !r.waits() {
		w.Error(resp.Error("ERR " + out.failed + " script: " + s.SHA()))
	}
}

// waits reports whether the script lacked memory and is to be run again.
func (r *Run) waits() bool {
	if !r.sandbox.Guard.Lacked() {
		return false
	}
	host, ok := r.host.(Waiter)
	return ok && host.Waits()
}

// begin readies everything that a script can see.
func (r *Run) begin(s *Script, keys, args [][]byte, host Host) {
	r.running = true
	r.host, r.proto = host, 2
	r.sandbox.Begin()
	r.libraries.Begin()
	r.forwarded = nil
	if r.last != s {
		r.last, r.main = s, r.sandbox.L.NewFunctionFromProto(s.Proto())
	}
	if !s.PlainKeys() {
		// A script that can get hold of a table may leave anything in it.
		r.inputs.forget()
	}
	r.inputs.set(&r.sandbox, keys, args)
	r.lent.bytes = 0
}

// end forgets the execution. What a script may have changed is made anew, now or
// at the next begin.
func (r *Run) end(s *Script) {
	r.sandbox.End()
	r.libraries.End()
	r.host, r.forwarded = nil, nil
	r.call.forget()
	if !s.PlainKeys() {
		r.inputs.forget()
	}
	r.running = false
}

// writeFailure writes an error that nobody caught, with its place.
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
		// The stack was full: there was no room to ask where.
		source, f.Line = compiler.ChunkName, 1
	}
	if source == compiler.ChunkName {
		source = "@" + compiler.ChunkName
	}
	b.WriteString(", on " + source + ":" + strconv.Itoa(f.Line) + ".")
	table, _ := f.Value.(*glua.LTable)
	writeError(w, resp.Error(b.String()), table)
}

// writeError writes the error that ended a script, or that it returned as t. One that
// bears the mark of a command has been counted as that command's.
func writeError(w *resp.Writer, e resp.Error, t *glua.LTable) {
	if t != nil && get(t, "ignore_error_stats_update") == glua.LTrue {
		w.ErrorFrom(e, resp.Repeated)
		return
	}
	w.ErrorFrom(e, resp.OfScript)
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
	// Redis 7.0 does not survive this.
	return "ERR unknown error"
}
