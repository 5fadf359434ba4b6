package libraries

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// coroutineRegistry is the initial number of registers of a coroutine.
const coroutineRegistry = 256

// coroutineSteps is the number of instructions that take as long as making a coroutine, which
// allocates stacks of 30 KB.
const coroutineSteps = 32

const errYield = "attempt to yield across metamethod/C-call boundary"

func (r *Runtime) coroutineLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{
		"create": r.create, "resume": r.resume, "running": running, "status": r.status,
		"wrap": r.wrap, "yield": r.yield,
	}
}

// spawn returns a new coroutine with the guard of r. It hides the context of l meanwhile, since the
// interpreter would derive a context from it that can be cancelled and does not call the guard. The
// first argument of l must be a Lua function; anything else raises an error.
func (r *Runtime) spawn(l *glua.LState) *glua.LState {
	f, _ := l.Get(1).(*glua.LFunction)
	if f == nil || f.IsG {
		sandbox.ArgError(l, 1, "Lua function expected")
	}
	r.Guard.Coroutine(l)
	options := l.Options
	l.Options.RegistrySize = coroutineRegistry
	l.RemoveContext()
	thread, _ := l.NewThread()
	l.SetContext(&r.Guard)
	thread.SetContext(&r.Guard)
	l.Options = options
	r.threads[thread] = f
	r.Guard.Step(l, coroutineSteps)
	return thread
}

func (r *Runtime) create(l *glua.LState) int {
	l.Push(r.spawn(l))
	return 1
}

// proceed resumes thread with the arguments of l from index first on. It pushes the values that
// thread yields or returns, and returns their number and nil. If thread raises an error or cannot
// be resumed, proceed returns 0 and the error value.
func (r *Runtime) proceed(l, thread *glua.LState, first int) (int, glua.LValue) {
	if thread.Dead {
		return 0, glua.LString("cannot resume dead coroutine")
	}
	if thread == l {
		return 0, glua.LString("cannot resume running coroutine")
	}
	if thread.Parent != nil || thread == r.L {
		return 0, glua.LString("cannot resume non-suspended coroutine")
	}
	args := make([]glua.LValue, 0, max(l.GetTop()-first+1, 0))
	for i := first; i <= l.GetTop(); i++ {
		args = append(args, l.Get(i))
	}
	state, err, values := l.Resume(thread, r.threads[thread], args...)
	if state == glua.ResumeError {
		thread.Dead = true
		r.Guard.Stop(l)
		r.Inspect(err)
		return 0, sandbox.ObjectOf(err)
	}
	if len(values) == 1 && values[0] == glua.LNil && (state == glua.ResumeOK || r.yielded == 0) {
		// A single nil may stand for no values, since the interpreter does not distinguish these.
		values = values[:0]
	}
	for _, v := range values {
		l.Push(v)
	}
	return len(values), nil
}

func (r *Runtime) resume(l *glua.LState) int {
	thread := sandbox.CheckThread(l, 1)
	n, failed := r.proceed(l, thread, 2)
	if failed != nil {
		l.Push(glua.LFalse)
		l.Push(failed)
		return 2
	}
	l.Insert(glua.LTrue, l.GetTop()-n+1)
	return n + 1
}

func (r *Runtime) wrap(l *glua.LState) int {
	thread := r.spawn(l)
	l.Push(l.NewFunction(func(l *glua.LState) int {
		n, failed := r.proceed(l, thread, 1)
		if failed == nil {
			return n
		}
		if text, ok := failed.(glua.LString); ok {
			r.Guard.Announce(l, len(text))
			sandbox.Throw(l, glua.LString(sandbox.Where(l, 1))+text)
		}
		l.Error(failed, 0)
		return 0
	}))
	return 1
}

func (r *Runtime) status(l *glua.LState) int {
	thread := sandbox.CheckThread(l, 1)
	status := "suspended"
	switch {
	case thread == l:
		status = "running"
	case thread.Dead:
		status = "dead"
	case thread.Parent != nil || thread == r.L:
		status = "normal"
	}
	l.Push(glua.LString(status))
	return 1
}

func running(l *glua.LState) int {
	if l.G.MainThread == l || l.Parent == nil {
		l.Push(glua.LNil)
	} else {
		l.Push(l)
	}
	return 1
}

// yield suspends the coroutine. It raises an error outside of a coroutine, and if a function in Go
// is on the coroutine's stack, since that function could not be resumed.
func (r *Runtime) yield(l *glua.LState) int {
	if l.Parent == nil {
		sandbox.Throw(l, errYield)
	}
	for level := 1; ; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			break
		}
		if _, err := l.GetInfo("l", frame, glua.LNil); err != nil {
			break
		}
		if frame.CurrentLine == -1 {
			sandbox.Throw(l, errYield)
		}
	}
	r.yielded = l.GetTop()
	return -1
}
