package scripting

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// The bounds of the script cache. maxEvalScripts bounds the scripts that only EVAL has added, as
// in Redis 7.4, since a client may put arguments into the text of its script. maxScriptBytes
// bounds all scripts. Redis has no bound for scripts of SCRIPT LOAD. They are never evicted here
// either, since a client that has loaded a script may call it by its SHA-1 forever; but once they
// fill the cache, the next SCRIPT LOAD is refused.
const (
	maxEvalScripts = 500
	maxScriptBytes = 32 << 20
	// scriptCost is the memory that the cache takes for a script, in bytes, in addition to the
	// script.
	scriptCost = 512
)

const errScriptsFull resp.Error = "ERR the script cache is full, loaded scripts take its 32 MiB; SCRIPT FLUSH empties it"

// shaSize is the length of a script's SHA-1 in hexadecimal digits.
const shaSize = 40

// scriptSHA is the SHA-1 of a script in lower-case hexadecimal digits.
type scriptSHA [shaSize]byte

// parseSHA parses a SHA-1 in any case. ok is false for another length. Characters that are not
// hexadecimal are accepted, as no script has such a name.
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

// script is a compiled script, with what the table of commands says about its calls.
type script struct {
	*lua.Script
	sha scriptSHA
	// keysOnly reports that the script accesses no key except its KEYS.
	keysOnly bool
	// result is the size of its latest result if that was large: see noteResult.
	result atomic.Int64

	// The fields below belong to the cache.
	cost   int64
	loaded bool        // by SCRIPT LOAD: it stays until SCRIPT FLUSH
	used   atomic.Bool // since the cache last looked for a script to evict
}

// scriptCache holds the scripts that have been run or loaded. Scripts that only EVAL has added
// are evicted to make room, in the order of their last use (approximated by the second-chance
// algorithm).
type scriptCache struct {
	flushed atomic.Uint64 // counts changes that invalidate the memos of workers

	mu     sync.Mutex
	byName map[scriptSHA]*script // guarded by mu
	queue  []*script             // guarded by mu: scripts of EVAL, the oldest first, and some that were loaded later
	evals  int                   // guarded by mu: the number of scripts that only EVAL has added
	bytes  int64                 // guarded by mu

	evicted atomic.Int64 // the number of evicted scripts
}

// get returns the script with a SHA-1, or nil.
func (sc *scriptCache) get(sha scriptSHA) *script {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	s := sc.byName[sha]
	if s != nil {
		s.used.Store(true)
	}
	return s
}

// add adds s, permanently if it was loaded, and returns the script that the cache has under its
// SHA-1, which another goroutine may have added before. A script of EVAL for which there is no
// room is not kept; the next EVAL compiles it again.
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

// drop evicts one script of EVAL, and reports whether there was one. mu is held.
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

// flush removes all scripts.
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

// scriptMemo is the script that a worker looked up last, with the value of flushed at that time.
type scriptMemo struct {
	script *script
	at     uint64
}

// noteResult remembers the size of a large result.
func (s *script) noteResult(n int) {
	if n < leastResult {
		n = 0
	}
	if s.result.Load() != int64(n) {
		s.result.Store(int64(n))
	}
}

// leastResult is the size in bytes from which on the size of a result is remembered.
const leastResult = 1 << 20

// keysOnly reports whether the script can access only its KEYS: all commands that it calls are
// known from its text, access only the keys in their arguments, and get nothing but KEYS as keys.
func keysOnly(t *command.Table, s *lua.Script) bool {
	calls, known := s.Calls()
	if !known {
		return false
	}
	for _, call := range calls {
		cmd := t.Lookup([]byte(call.Name))
		switch {
		case cmd == nil: // it fails, whatever its arguments are
			continue
		case cmd.Sub != nil, cmd.SpansKeyspace(), cmd.Keys.Count > 0:
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
