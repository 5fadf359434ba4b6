package scripting

import (
	"crypto/sha1"
	"encoding/hex"
	"sync/atomic"

	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/command"
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

// host gives a running script access to the server, through the worker that the script runs on. It
// implements [lua.Host].
type host struct {
	c        *command.Call
	caller   *command.Command // the command that runs the script
	w        resp.Writer      // the reply of the latest command that the script has called
	readonly bool
	run      *lua.Run
	wrote    bool // whether the script has called a command that writes
	begun    bool // a command that writes was allowed, so the script runs to its end even if the role of the server changes
	referred int  // the number of values that the script got as references
	full     bool // whether memory was full when the script began, and the script has not declared that it needs none
	spent    int  // the number of instructions that the script took; set at its end

	// The fields below are for scripts that wait for memory: see wait.go.
	memory  *budget.Grant // the memory for the result; nil if none was requested
	mayWait bool          // whether the script may wait, because it is not part of a transaction
	acted   bool          // whether the script has called a command that does more than read
}

// worker is the state of the group for a [command.Worker].
type worker struct {
	engine *engine
	host   host
	last   scriptMemo
	call   invocation // the call that runs on the worker's coroutine
}

// scriptsOf returns the group's state of the worker of c. The running command must belong to this
// group.
func scriptsOf(c *command.Call) *worker { return command.Scratch[worker](c) }

// tidy is the state of the goroutine that returns the memory of large scripts to the operating
// system: whether it runs, and whether it has to run once more.
type tidy struct {
	running, again atomic.Bool
}

// scriptOf returns the cached script whose text is source, or nil if it is not cached.
func (k *worker) scriptOf(source []byte) *script {
	if len(source) > lua.MaxSource {
		return nil
	}
	return k.script(shaOf(source))
}

// shaOf returns the SHA-1 of source in hexadecimal digits.
func shaOf(source []byte) (sha scriptSHA) {
	sum := sha1.Sum(source)
	hex.Encode(sha[:], sum[:])
	return sha
}

// compile compiles a copy of source, adds the script to the cache, and returns it. If the cache has
// the script, compile only computes the SHA-1, because many clients load all their scripts each
// time they connect. loaded says that the script stays until SCRIPT FLUSH. The error is "" on
// success.
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

// script returns the cached script with the SHA-1 sha, or nil. The worker remembers the latest one,
// so that a pipeline with one script takes no lock.
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
