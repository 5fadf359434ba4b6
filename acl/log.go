package acl

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// Context says in which way a refused call was made.
type Context uint8

// These are the contexts of ACL LOG.
const (
	TopLevel Context = iota
	InTransaction
	InScript
	InModule
)

// String returns the name of the context in ACL LOG.
func (c Context) String() string {
	return [...]string{"toplevel", "multi", "lua", "module"}[c]
}

// LogEntry is an entry of ACL LOG: one refusal, or several similar refusals within a short time.
type LogEntry struct {
	Count   int64
	Reason  Denied
	Context Context
	Object  string // the refused command, key or channel; for a login the command, such as "AUTH"
	User    string
	Client  string // the line of CLIENT INFO for the client at the last refusal
	ID      int64
	Created int64 // time of the first refusal in Unix milliseconds
	Updated int64 // time of the last refusal in Unix milliseconds
}

// alike reports whether the refusals e and o are counted in one entry, provided that they are close
// in time.
func (e *LogEntry) alike(o *LogEntry) bool {
	return e.Reason == o.Reason && e.Context == o.Context && e.Object == o.Object && e.User == o.User
}

const (
	// logGroup is the maximum time between two similar refusals that are counted in one entry (in
	// Redis: ACL_LOG_GROUPING_MAX_TIME_DELTA).
	logGroup = 60 * time.Second
	// maxLogText is the maximum length, in bytes, of an object and of a user name in the log: a
	// client that has not logged in can choose the name.
	maxLogText = 256
	// maxLogLook is the number of newest entries in which a similar one is searched.
	maxLogLook = 10
)

// Log keeps the newest refusals for ACL LOG, and counts all of them. Any goroutine may use it.
type Log struct {
	mu      sync.Mutex
	entries list.List // the entries, of type *LogEntry, the newest first; guarded by mu
	most    int       // the maximum number of entries; guarded by mu
	nextID  int64     // the ID of the next entry; guarded by mu
	counts  [DeniedChannel + 1]int64
}

// SetMax sets the maximum number of entries (acllog-max-len) and removes the oldest ones beyond it.
// With 0, refusals are only counted.
func (l *Log) SetMax(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = n
	l.trim()
}

// trim removes the oldest entries beyond the maximum. l.mu is held.
func (l *Log) trim() {
	for l.entries.Len() > l.most {
		l.entries.Remove(l.entries.Back())
	}
}

// LogText returns the beginning of whole, an object or a user name, that the log keeps. It is a
// copy: a part of whole would keep all of it in memory, which may be as long as a request.
func LogText[T string | []byte](whole T) string {
	return strings.Clone(string(whole[:min(len(whole), maxLogText)]))
}

// Add records the refusal e at nowMillis, in Unix milliseconds. If one of the newest maxLogLook
// entries is for similar refusals and was updated within logGroup, Add counts e there, and otherwise
// it makes a new entry. Add sets Count, ID, Created and Updated. With a maximum of 0 entries, Add
// only counts the refusal.
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

// Newest returns copies of up to n entries, the newest first.
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

// Count returns the number of calls that were refused for that reason since the start or the last
// CONFIG RESETSTAT.
func (l *Log) Count(reason Denied) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[reason]
}

// ResetCounts sets the counts of all reasons to zero (CONFIG RESETSTAT). The entries stay.
func (l *Log) ResetCounts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.counts[:])
}
