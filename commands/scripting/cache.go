package scripting

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// What the script cache holds at most: so many scripts that only EVAL has brought, as
// in Redis 7.4, since a client may put an argument into the text of its script; and so
// many bytes of scripts in all. Redis has no bound for those that SCRIPT LOAD has
// brought. None of them goes here either, since whoever has loaded one may call it by its
// name for ever; but where they fill the cache, the next is refused.
const (
	maxEvalScripts = 500
	maxScriptBytes = 32 << 20
	// scriptCost is what the cache takes for a script, beside the script.
	scriptCost = 512
)

const errScriptsFull resp.Error = "ERR the script cache is full, loaded scripts take its 32 MiB; SCRIPT FLUSH empties it"

// shaSize is the length of a script's name, its SHA-1 in hexadecimal digits.
const shaSize = 40

// scriptSHA is the name of a script, in lower case.
type scriptSHA [shaSize]byte

// parseSHA reads a name in any case. What has another length is none; what has
// other letters is one that no script has.
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

// script is a compiled script with what the table of commands says of its calls.
type script struct {
	*lua.Script
	sha scriptSHA
	// keysOnly says that the script touches no key beside its KEYS.
	keysOnly bool
	// result is the size of its last result if that was large: see noteResult.
	result atomic.Int64

	// The rest is the cache's.
	cost   int64
	loaded bool        // by SCRIPT LOAD: stays until SCRIPT FLUSH
	used   atomic.Bool // since the cache last looked for one to drop
}

// scriptCache holds the scripts that have been run or loaded. Those that only EVAL
// has brought make room for others, the ones that have not been used for long
// first (a second chance for each that was).
type scriptCache struct {
	flushed atomic.Uint64 // counts changes after which a worker must look again

	mu     sync.Mutex
	byName map[scriptSHA]*script // guarded by mu
	queue  []*script             // guarded by mu: those of EVAL, the oldest first, and some loaded since
	evals  int                   // guarded by mu: how many are of EVAL
	bytes  int64                 // guarded by mu

	evicted atomic.Int64 // scripts that had to go
}

// get returns the script of that name, or nil.
func (sc *scriptCache) get(sha scriptSHA) *script {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	s := sc.byName[sha]
	if s != nil {
		s.used.Store(true)
	}
	return s
}

// add keeps s, for good if it was loaded, and returns what the cache has under its
// name: another goroutine may have been faster. A script that EVAL has brought and
// that finds no room is not kept, which does no harm.
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

// drop forgets one script that EVAL has brought; it reports whether there was one.
// The caller holds mu.
func (sc *scriptCache) drop() bool {
	for len(sc.queue) > 0 {
		s := sc.queue[0]
		sc.queue[0] = nil
		sc.queue = sc.queue[1:]
		switch {
		case s.loaded:
			// never asked again
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

// flush forgets all scripts.
func (sc *scriptCache) flush() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.byName, sc.queue, sc.evals, sc.bytes = nil, nil, 0, 0
	sc.flushed.Add(1)
}

// size is how many scripts there are and what they take.
func (sc *scriptCache) size() (n int, bytes int64) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return len(sc.byName), sc.bytes
}

// scriptMemo is the script that a worker has looked up last, and when.
type scriptMemo struct {
	script *script
	at     uint64
}

// noteResult remembers how large the result of a script was.
func (s *script) noteResult(n int) {
	if n < leastResult {
		n = 0
	}
	if s.result.Load() != int64(n) {
		s.result.Store(int64(n))
	}
}

// leastResult is from how many bytes on the size of a result is remembered.
const leastResult = 1 << 20

// keysOnly reports whether the script can only touch its KEYS: it calls commands
// that are known from its text, which stay with the keys they are given, and gives
// them nothing else for keys.
func keysOnly(t *command.Table, s *lua.Script) bool {
	calls, known := s.Calls()
	if !known {
		return false
	}
	for _, call := range calls {
		cmd := t.Lookup([]byte(call.Name))
		switch {
		case cmd == nil: // an error, whatever it is given
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
