package stats

import (
	"fmt"
	"sync"
	"time"
)

// SlowEntry is a call that took long.
type SlowEntry struct {
	ID   int64         // from 0, in order; SLOWLOG RESET does not restart it
	At   int64         // civil time at its end, in Unix milliseconds
	Took time.Duration // without the time of waiting
	Args []string      // cut by [CutArgs]
	Addr string        // of the client
	Name string        // of the client
	size int
}

const (
	// Redis keeps 32 arguments of a call, and 128 bytes of each.
	maxSlowArgs = 32
	maxSlowArg  = 128
	// maxSlowBytes bounds the memory of all entries. Beyond it the oldest are removed.
	maxSlowBytes = 16 << 20
	// slowEntryCost is the memory of an entry in addition to its texts, and slowArgCost that of a
	// text.
	slowEntryCost, slowArgCost = 160, 32
)

// CutArgs copies arguments as the slow log shows them: 32 of them, 128 bytes of each.
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

// SlowLog keeps the newest slow calls. Any goroutine may use it.
type SlowLog struct {
	mu         sync.Mutex
	entries    []SlowEntry // guarded by mu; the oldest first
	next       int64       // guarded by mu: the next ID
	maxEntries int         // guarded by mu: slowlog-max-len
	bytes      int         // guarded by mu
}

// SetMax bounds the number of entries, and removes the oldest beyond it.
func (l *SlowLog) SetMax(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = n
	l.trim()
}

// Add adds a call and sets its ID.
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

// trim removes the oldest entries beyond the bounds. The caller holds mu.
func (l *SlowLog) trim() {
	gone := 0
	for ; gone < len(l.entries) && (len(l.entries)-gone > l.maxEntries || l.bytes > maxSlowBytes); gone++ {
		l.bytes -= l.entries[gone].size
		l.entries[gone] = SlowEntry{}
	}
	l.entries = l.entries[gone:]
}

// Newest returns up to n entries, the newest first.
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
