package scripting

import (
	"crypto/sha1"
	"encoding/hex"
	"sync/atomic"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// engine is the state of the group for the server: the script cache and the pool of Lua states.
type engine struct {
	server  *command.Server
	scripts scriptCache
	runs    *lua.Pool
	tidy    tidy
}

// figures are the statistics of the cached scripts.
func figures() []figure.Figure {
	return []figure.Figure{
		figure.Shown("Memory", "used_memory_scripts", command.Counted(func(e *engine) int64 {
			_, bytes := e.scripts.size()
			return bytes
		})),
		figure.Shown("Memory", "number_of_cached_scripts", command.Counted(func(e *engine) int64 {
			n, _ := e.scripts.size()
			return int64(n)
		})),
		figure.Shown("Stats", "evicted_scripts", command.Counted(func(e *engine) int64 { return e.scripts.evicted.Load() })),
	}
}

// host is what a running script can access of the server, through the worker that it runs on.
type host struct {
	c        *command.Call
	caller   *command.Command // the command that runs the script
	w        resp.Writer      // the reply of the latest command
	readonly bool
	run      *lua.Run
	wrote    bool // it has called a command that writes
	begun    bool // it was allowed to call such a command, so it runs to its end even if the role of the server changes
	referred int  // how many values it got as references
	full     bool // memory was full when it began, and it has not declared that it needs none
	spent    int  // the instructions that it took, set at its end

	// For scripts that wait for memory: see wait.go.
	memory  *budget.Grant // of its result, if it was requested
	mayWait bool          // it is not part of a transaction
	acted   bool          // it has called a command that does more than read
}

// worker is the state of the group for a worker.
type worker struct {
	engine *engine
	host   host
	last   scriptMemo
	call   invocation // of the coroutine that the worker is
}

// scriptsOf returns the state of the group for the worker. The running command must be of this
// group.
func scriptsOf(c *command.Call) *worker { return command.Scratch[worker](c) }

// tidy is the state of the goroutine that frees the memory of large scripts: whether it runs, and
// whether it has to run again.
type tidy struct {
	running, again atomic.Bool
}

// scriptOf returns the cached script with the given source, or nil.
func (k *worker) scriptOf(source []byte) *script {
	if len(source) > lua.MaxSource {
		return nil
	}
	return k.script(shaOf(source))
}

// shaOf returns the SHA-1 of a script.
func shaOf(source []byte) (sha scriptSHA) {
	sum := sha1.Sum(source)
	hex.Encode(sha[:], sum[:])
	return sha
}

// compile returns the script of source, which it copies, and adds it to the cache. For a cached
// script it only computes the SHA-1: many clients load all their scripts each time they connect.
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
	s.keysOnly = keysOnly(e.server.Commands, compiled)
	return e.scripts.add(s, loaded)
}

// script returns the cached script with a SHA-1, or nil. The worker remembers the latest one, so
// that a pipeline with one script takes no lock.
func (k *worker) script(sha scriptSHA) *script {
	m := &k.last
	at := k.engine.scripts.flushed.Load()
	if m.script != nil && m.at == at && m.script.sha == sha {
		if !m.script.used.Load() {
			m.script.used.Store(true)
		}
		return m.script
	}
	s := k.engine.scripts.get(sha)
	m.script, m.at = s, at
	return s
}
