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

// engine is what the group keeps for the server: the scripts that are known, and the
// states that run them.
type engine struct {
	server  *command.Server
	scripts scriptCache
	runs    *lua.Pool
	tidy    tidy
}

// figures are those of the scripts that are kept.
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

// host is what a running script sees of the server: the worker it runs on.
type host struct {
	c        *command.Call
	caller   *command.Command // that runs the script
	w        resp.Writer      // the reply of the last command
	readonly bool
	run      *lua.Run
	wrote    bool // has called a command that writes
	begun    bool // it was let do that: it comes to its end, whatever the role of the server is then
	lent     int  // how often it was lent a value
	full     bool // memory was full when it began, and it has not said that it can do with that
	spent    int  // instructions, once it is over

	// For scripts that wait for memory: see wait.go.
	memory  *budget.Grant // of its result, if that was asked for
	mayWait bool          // it is no part of a transaction
	acted   bool          // has called a command that does more than read
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

// tidy says whether a goroutine frees what large scripts have left, and whether it has to
// begin again.
type tidy struct {
	running, again atomic.Bool
}

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
	s.keysOnly = keysOnly(e.server.Commands, compiled)
	return e.scripts.add(s, loaded)
}

// script returns the cached script of that name, or nil. A worker remembers the last one, so
// that a pipeline of one script takes no lock.
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
