package stats

import (
	"fmt"
	"sync"
	"time"
)

// SlowEntry is an entry of SLOWLOG: a call that took long.
type SlowEntry struct {
	ID   int64         // number of the entry, from 0; SLOWLOG RESET does not restart it
	At   int64         // civil time at the end of the call, in Unix milliseconds
	Took time.Duration // duration of the call without the time of waiting
	Args []string      // the arguments as [CutArgs] returns them
	Addr string        // address of the client
	Name string        // name of the client, as the client has set it
	size int
}

const (
	// maxSlowArgs is the maximum number of arguments of a call that are kept, and maxSlowArg the
	// maximum number of bytes of each, as in Redis.
	maxSlowArgs = 32
	maxSlowArg  = 128
	// maxSlowBytes is the maximum memory, in bytes, of all entries. Beyond it the oldest entries
	// are removed.
	maxSlowBytes = 16 << 20
	// slowEntryCost is the memory, in bytes, of an entry without its texts, and slowArgCost the
	// memory of an argument without its bytes.
	slowEntryCost, slowArgCost = 160, 32
)

// CutArgs returns copies of args in the form in which the slow log shows them: at most 32
// arguments, and at most 128 bytes of each. A text says how many further arguments or bytes there
// were.
func CutArgs(args [][]byte) []string {
	n := min(len(args), maxSlowArgs)
	cut := make([]string, n)
	for i, a := range args[:n] {
		switch {
		case i == maxSlowArgs-1 && len(args) > maxSlowArgs:
			cut[i] = fmt.Sprintf("... (%d more arguments)", len(args)-maxSlowArgs+1)
		case len(a) > maxSlowArg:
			cut[i] = fmt.Sprintf("%s... (%d more bytes)", a[:maxSlowArg], len(a)-maxSlowArg)
		default:
			cut[i] = string(a)
		}
	}
	return cut
}

// SlowLog keeps the newest calls that took long. Any goroutine may use it.
type SlowLog struct {
	mu         sync.Mutex
	entries    []SlowEntry // the entries, the oldest first; guarded by mu
	next       int64       // the ID of the next entry; guarded by mu
	maxEntries int         // the value of slowlog-max-len; guarded by mu
	bytes      int         // memory of all entries in bytes; guarded by mu
}

// SetMax sets the maximum number of entries, and removes the oldest ones beyond it. With 0, no
// calls are added.
func (l *SlowLog) SetMax(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = n
	l.trim()
}

// Add adds e to the log and sets its ID. It does nothing if the maximum number of entries is 0.
func (l *SlowLog) Add(e SlowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maxEntries <= 0 {
		return
	}
	e.ID = l.next
	l.next++
	e.size = slowEntryCost + len(e.Addr) + len(e.Name)
	for _, a := range e.Args {
		e.size += slowArgCost + len(a)
	}
	l.entries, l.bytes = append(l.entries, e), l.bytes+e.size
	l.trim()
}

// trim removes the oldest entries beyond the bounds. l.mu is held.
func (l *SlowLog) trim() {
	gone := 0
	for ; gone < len(l.entries) && (len(l.entries)-gone > l.maxEntries || l.bytes > maxSlowBytes); gone++ {
		l.bytes -= l.entries[gone].size
		l.entries[gone] = SlowEntry{}
	}
	l.entries = l.entries[gone:]
}

// Newest returns copies of up to n entries, the newest first.
func (l *SlowLog) Newest(n int) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := make([]SlowEntry, 0, min(n, len(l.entries)))
	for i := len(l.entries) - 1; i >= 0 && len(newest) < n; i-- {
		newest = append(newest, l.entries[i])
	}
	return newest
}

// Len returns the number of entries.
func (l *SlowLog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Reset removes all entries.
func (l *SlowLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.bytes = nil, 0
}
