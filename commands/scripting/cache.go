package scripting

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

const (
	// maxEvalScripts is the maximum number of scripts in the cache that only EVAL has added. Redis
	// 7.4 has the same bound, since a client may put arguments into the text of its script.
	maxEvalScripts = 500
	// maxScriptBytes is the maximum memory of all cached scripts, in bytes. Redis has no bound for
	// scripts of SCRIPT LOAD. Such scripts are never evicted here either, since a client that has
	// loaded a script may call it by its SHA-1 forever. But once they fill the cache, the next
	// SCRIPT LOAD is refused.
	maxScriptBytes = 32 << 20
	// scriptCost is the memory, in bytes, that the cache takes for a script, without the script
	// itself.
	scriptCost = 512
)

const errScriptsFull resp.Error = "ERR the script cache is full, loaded scripts take its 32 MiB; SCRIPT FLUSH empties it"

// shaSize is the length of the SHA-1 of a script in hexadecimal digits.
const shaSize = 40

// scriptSHA is the SHA-1 of a script in lower-case hexadecimal digits.
type scriptSHA [shaSize]byte

// parseSHA parses b as a SHA-1, in any case. ok is false if the length is wrong. Characters that
// are not hexadecimal digits are accepted, because no script has such a name.
func parseSHA(b []byte) (sha scriptSHA, ok bool) {
	if len(b) != shaSize {
		return sha, false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		sha[i] = c
	}
	return sha, true
}

// script is a compiled script, with properties that follow from the table of commands.
type script struct {
	*lua.Script
	sha scriptSHA
	// keysOnly says that the script accesses no keys except its KEYS.
	keysOnly bool
	// result is the size in bytes of the script's latest result if that was at least leastResult,
	// and otherwise 0.
	result atomic.Int64

	// The fields below belong to the cache. cost is the memory of the script in bytes.
	cost   int64
	loaded bool        // whether SCRIPT LOAD has added the script, which then stays until SCRIPT FLUSH
	used   atomic.Bool // whether the script was used since the cache last considered it for eviction
}

// scriptCache has the scripts that were run or loaded. Scripts that only EVAL has added are evicted
// to make room, in the order of their last use (approximated by the second-chance algorithm). Any
// goroutine may use the cache.
type scriptCache struct {
	flushed atomic.Uint64 // number of changes that make the memos of workers invalid

	mu     sync.Mutex
	byName map[scriptSHA]*script // all cached scripts; guarded by mu
	queue  []*script             // the scripts of EVAL, the oldest first, and some that were loaded later; guarded by mu
	evals  int                   // the number of scripts that only EVAL has added; guarded by mu
	bytes  int64                 // the memory of all scripts; guarded by mu

	evicted atomic.Int64 // the number of evicted scripts
}

// get returns the script with the SHA-1 sha, or nil if the cache does not have it. It marks the
// script as used.
func (sc *scriptCache) get(sha scriptSHA) *script {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	s := sc.byName[sha]
	if s != nil {
		s.used.Store(true)
	}
	return s
}

// add adds s to the cache and returns it, and evicts other scripts if necessary. If the cache has a
// script with the same SHA-1, add returns that script instead. loaded says that the script stays
// until SCRIPT FLUSH. If there is no room for a loaded script, add returns an error. If there is no
// room for a script of EVAL, add returns s without keeping it, and the next EVAL compiles the
// script again.
func (sc *scriptCache) add(s *script, loaded bool) (*script, resp.Error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if old := sc.byName[s.sha]; old != nil {
		if loaded && !old.loaded {
			old.loaded = true
			sc.evals--
		}
		return old, ""
	}
	for (!loaded && sc.evals >= maxEvalScripts || sc.bytes+s.cost > maxScriptBytes) && sc.drop() {
	}
	if sc.bytes+s.cost > maxScriptBytes {
		if loaded {
			return nil, errScriptsFull
		}
		return s, ""
	}
	if sc.byName == nil {
		sc.byName = make(map[scriptSHA]*script)
	}
	s.loaded = loaded
	sc.byName[s.sha] = s
	sc.bytes += s.cost
	if !loaded {
		sc.evals++
		sc.queue = append(sc.queue, s)
	}
	return s, ""
}

// drop evicts one script that only EVAL has added, and returns false if there is none. A script
// that was called since its last turn in the queue gets another turn. sc.mu is held.
func (sc *scriptCache) drop() bool {
	for len(sc.queue) > 0 {
		s := sc.queue[0]
		sc.queue[0] = nil
		sc.queue = sc.queue[1:]
		switch {
		case s.loaded:
			// a loaded script is never evicted, so it leaves the queue
		case s.used.Swap(false):
			sc.queue = append(sc.queue, s)
		default:
			delete(sc.byName, s.sha)
			sc.bytes -= s.cost
			sc.evals--
			sc.evicted.Add(1)
			sc.flushed.Add(1)
			return true
		}
	}
	return false
}

func (sc *scriptCache) flush() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.byName, sc.queue, sc.evals, sc.bytes = nil, nil, 0, 0
	sc.flushed.Add(1)
}

// size returns the number of scripts and their memory in bytes.
func (sc *scriptCache) size() (n int, bytes int64) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return len(sc.byName), sc.bytes
}

// scriptMemo is the script that a worker looked up last. at is the value of scriptCache.flushed at
// that time.
type scriptMemo struct {
	script *script
	at     uint64
}

// noteResult stores n, the size of a result in bytes, for the next call of the script. A size below
// leastResult is stored as 0.
func (s *script) noteResult(n int) {
	if n < leastResult {
		n = 0
	}
	if s.result.Load() != int64(n) {
		s.result.Store(int64(n))
	}
}

// leastResult is the minimum size of a result, in bytes, for which the next call of the script
// requests memory before it begins.
const leastResult = 1 << 20

// keysOnly reports whether s can access only its KEYS. That is so if all commands that it calls are
// known from its text, access only keys that are among their arguments, and get only elements of
// KEYS as keys. For a command that has subcommands or the argument numkeys, the result is false.
func keysOnly(t *command.Table, s *lua.Script) bool {
	calls, known := s.Calls()
	if !known {
		return false
	}
	for _, call := range calls {
		cmd := t.Lookup([]byte(call.Name))
		switch {
		case cmd == nil: // the command does not exist, so the call fails
			continue
		case cmd.Sub != nil, cmd.Keys.Count > 0, cmd.SpansKeyspace():
			return false
		}
		for _, i := range cmd.Keys.Positions(make([][]byte, 1+len(call.Keys))) {
			if call.Keys[i-1] == 0 {
				return false
			}
		}
	}
	return true
}
