package acl

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// Context says how a refused call was made.
type Context uint8

// The contexts of ACL LOG.
const (
	TopLevel Context = iota
	InTransaction
	InScript
	InModule
)

// String returns the context as ACL LOG spells it.
func (c Context) String() string {
	return [...]string{"toplevel", "multi", "lua", "module"}[c]
}

// LogEntry is one refusal, or several equal ones within a short time.
type LogEntry struct {
	Count   int64
	Reason  Denied
	Context Context
	Object  string // the command, key or channel, or "AUTH" and similar for logins
	User    string
	Client  string // CLIENT INFO of the last one
	ID      int64
	Created int64 // Unix milliseconds of the first one
	Updated int64 // of the last one
}

// alike reports whether two refusals are shown as one entry.
func (e *LogEntry) alike(o *LogEntry) bool {
	return e.Reason == o.Reason && e.Context == o.Context && e.Object == o.Object && e.User == o.User
}

const (
	// logGroup is the time within which an equal refusal counts for the same entry (Redis:
	// ACL_LOG_GROUPING_MAX_TIME_DELTA).
	logGroup = 60 * time.Second
	// maxLogText bounds the bytes of an object or name in the log: a client that has not logged in
	// chooses the name.
	maxLogText = 256
	// maxLogLook is the number of newest entries that are searched for an equal one.
	maxLogLook = 10
)

// Log keeps the newest refusals. Any goroutine may use it.
type Log struct {
	mu      sync.Mutex
	entries list.List // guarded by mu: of *LogEntry, the newest first
	most    int       // guarded by mu
	nextID  int64     // guarded by mu
	counts  [DeniedChannel + 1]int64
}

// SetMax sets the maximum number of entries (acllog-max-len).
func (l *Log) SetMax(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = n
	l.trim()
}

// trim removes the oldest entries beyond the maximum.
func (l *Log) trim() {
	for l.entries.Len() > l.most {
		l.entries.Remove(l.entries.Back())
	}
}

// LogText returns the part of an object or name that the log keeps. It is a copy, since the whole
// may be as long as a request and would be kept in memory by a part of it.
func LogText[T string | []byte](whole T) string {
	return strings.Clone(string(whole[:min(len(whole), maxLogText)]))
}

// Add records a refusal.
func (l *Log) Add(e LogEntry, nowMillis int64) {
	e.Object, e.User = LogText(e.Object), LogText(e.User)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[e.Reason]++
	if l.most == 0 {
		return
	}
	at := l.entries.Front()
	for range maxLogLook {
		if at == nil {
			break
		}
		old := at.Value.(*LogEntry)
		if old.alike(&e) && max(nowMillis-old.Updated, old.Updated-nowMillis) <= logGroup.Milliseconds() {
			old.Count, old.Updated, old.Client = old.Count+1, nowMillis, e.Client
			l.entries.MoveToFront(at)
			return
		}
		at = at.Next()
	}
	e.Count, e.Created, e.Updated, e.ID = 1, nowMillis, nowMillis, l.nextID
	l.nextID++
	l.entries.PushFront(&e)
	l.trim()
}

// Newest returns up to n entries, the newest first.
func (l *Log) Newest(n int) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := make([]LogEntry, 0, min(n, l.entries.Len()))
	for at := l.entries.Front(); at != nil && len(newest) < n; at = at.Next() {
		newest = append(newest, *at.Value.(*LogEntry))
	}
	return newest
}

// Reset removes all entries, but keeps the counts.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

// Count returns how many calls were refused for a reason since the start or CONFIG
// RESETSTAT.
func (l *Log) Count(reason Denied) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[reason]
}

// ResetCounts sets the counts to zero (CONFIG RESETSTAT).
func (l *Log) ResetCounts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.counts[:])
}
