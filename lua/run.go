package lua

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// Run is a state that executes one script at a time. Only Kill may be called by
// another goroutine than its owner's.
type Run struct {
	guard guard
	state *glua.LState
	// dirty says that the state is not to be used again.
	dirty bool
	// running catches a panic that went through execute.
	running bool

	// Of the state.
	onError *glua.LFunction
	globals *glua.LTable
	// stringMeta is what getmetatable shows of the strings' metatable.
	stringMeta   *glua.LTable
	ipairsStep   *glua.LFunction
	nextFunction *glua.LFunction
	nullValue    *glua.LUserData
	readonly     map[*glua.LTable]*glua.LTable
	keys         *glua.LTable
	argv         *glua.LTable
	// slots are the strings that the tables' values point to.
	slots [2][]glua.LString
	// span is where the slots' bytes lie, once somebody has asked; its end is 0 before.
	span struct{ from, to uintptr }
	// last is the script whose main function main is.
	last *Script
	main *glua.LFunction

	// Of one execution.
	host  Host
	proto int
	marks []mark
	// unhandled says that the handler of the last protected call failed itself.
	unhandled bool
	failure   failure
	// forwarded is the reply of a command that is the script's.
	forwarded []byte
	lent      lent
	// yielded is how many values the last yield gave.
	yielded int
	threads map[*glua.LState]*glua.LFunction
	random  random
	json    jsonSettings
	call    callBuffers
}

const (
	callStackSize   = 200
	registrySize    = 1024
	registryMaxSize = 1 << 16
	registryStep    = 4096
)

// The interpreter has this for all states. It is set before there is one.
var _ = func() bool {
	glua.MaxArrayIndex = value.ArrayMax
	return true
}()

func newRun(m *memory) *Run {
	r := &Run{
		guard: newGuard(m),
		state: glua.NewState(glua.Options{
			CallStackSize: callStackSize, RegistrySize: registrySize,
			RegistryMaxSize: registryMaxSize, RegistryGrowStep: registryStep,
			SkipOpenLibs: true,
		}),
		readonly: map[*glua.LTable]*glua.LTable{},
		threads:  map[*glua.LState]*glua.LFunction{},
	}
	r.onError = r.state.NewFunction(r.caught)
	r.open()
	r.state.SetContext(&r.guard)
	return r
}

func (r *Run) reusable() bool {
	return !r.dirty && !r.running && !r.guard.killed.Load() && r.guard.usage.own <= leastMemory && r.lent.bytes <= leastMemory
}

func (r *Run) close() {
	r.guard.usage.take(0)
	r.state.Close()
}

func (r *Run) execute(s *Script, keys, args [][]byte, host Host, w *resp.Writer) {
	r.begin(s, keys, args, host)
	defer r.lent.end() // be it that a command panics
	l := r.state
	l.Push(r.main)
	start := len(w.Buf)
	switch err := r.protect(l, 0, 1, mark{top: true}); {
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
	if !r.guard.usage.lacked {
		return false
	}
	host, ok := r.host.(Waiter)
	return ok && host.Waits()
}

// begin readies everything that a script can see.
func (r *Run) begin(s *Script, keys, args [][]byte, host Host) {
	r.running = true
	r.host, r.proto = host, 2
	r.guard.begin()
	r.random.seed(0)
	r.failure, r.forwarded = failure{}, nil
	if r.last != s {
		r.last, r.main = s, r.state.NewFunctionFromProto(s.Proto())
	}
	if !s.PlainKeys() {
		// A script that can get hold of a table may leave anything in it.
		r.keys, r.argv = nil, nil
	}
	r.keys = r.arguments("KEYS", 0, r.keys, keys)
	r.argv = r.arguments("ARGV", 1, r.argv, args)
	r.span.to, r.lent.bytes = 0, 0
}

// arguments fills the table of a global. Its strings are the caller's bytes: no
// value outlives the run, and the caller keeps them until then. So a table that is
// used again needs no new values: those that it has point to the slots.
func (r *Run) arguments(name string, which int, table *glua.LTable, values [][]byte) *glua.LTable {
	slots := r.slots[which]
	if table == nil {
		table = r.state.CreateTable(len(values), 0)
		r.globals.RawSetString(name, table)
		slots = nil
	}
	if len(values) > cap(slots) {
		slots = make([]glua.LString, 0, max(len(values), 8))
	}
	known := len(slots)
	slots = slots[:len(values)]
	for i, b := range values {
		slots[i] = glua.LString(value.View(b))
		if i >= known {
			table.RawSetInt(i+1, value.StringAt(&slots[i]))
		}
	}
	for i := known; i > len(values); i-- {
		table.RawSetInt(i, glua.LNil)
	}
	r.slots[which] = slots
	return table
}

// borrowed reports whether s lies in one of KEYS and ARGV. These lie close together, so that
// what is beside all of them need not be compared with each: there may be tens of thousands.
func (r *Run) borrowed(s string) bool {
	at, _ := placeOf(s)
	if r.span.to == 0 {
		r.span.from, r.span.to = r.slotSpan()
	}
	if at < r.span.from || at >= r.span.to {
		return false
	}
	for _, slots := range r.slots {
		for _, slot := range slots {
			if from, to := placeOf(string(slot)); from <= at && at < to {
				return true
			}
		}
	}
	return false
}

// slotSpan returns the memory from the first byte of KEYS and ARGV to behind the last.
func (r *Run) slotSpan() (from, to uintptr) {
	from, to = math.MaxUint, 1
	for _, slots := range r.slots {
		for _, slot := range slots {
			if len(slot) > 0 {
				begin, end := placeOf(string(slot))
				from, to = min(from, begin), max(to, end)
			}
		}
	}
	return from, to
}

// placeOf returns where s lies in memory.
func placeOf(s string) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return from, from + uintptr(len(s))
}

// end forgets the execution. What a script may have changed is made anew, now or
// at the next begin.
func (r *Run) end(s *Script) {
	r.state.SetTop(0)
	r.host, r.guard.pause, r.guard.budget = nil, nil, 0
	r.failure, r.forwarded = failure{}, nil
	r.guard.usage.end()
	r.json = jsonSettings{}
	r.call.forget()
	if len(r.threads) > 0 {
		clear(r.threads)
	}
	if !s.PlainKeys() {
		r.keys, r.argv = nil, nil
	}
	r.running = false
}

// writeFailure writes an error that nobody caught, with its place.
func (r *Run) writeFailure(s *Script, err error, w *resp.Writer) {
	f := r.failure
	if f.value == nil {
		f.value = objectOf(err)
	}
	text := r.failureText(f.value)
	if r.guard.killed.Load() {
		text = "ERR " + r.guard.why()
	}
	var b strings.Builder
	b.WriteString(text)
	b.WriteString(" script: ")
	b.WriteString(s.SHA())
	source := f.source
	if source == "" {
		// The stack was full: there was no room to ask where.
		source, f.line = compiler.ChunkName, 1
	}
	if source == compiler.ChunkName {
		source = "@" + compiler.ChunkName
	}
	b.WriteString(", on " + source + ":" + strconv.Itoa(f.line) + ".")
	table, _ := f.value.(*glua.LTable)
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
