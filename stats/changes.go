package stats

import (
	"strings"
	"sync"
)

// Change is an event that may explain what the server does from then on: a changed setting, a changed
// user, a deletion of all keys.
type Change struct {
	ID   int64  // from 1, in order
	At   int64  // civil time in Unix milliseconds
	Kind string // one word: config, acl, flush, script, ...
	Text string // what has changed, without secrets and keys
	// Key is the key, or the pattern of keys, that the change is about, and Words are the arguments
	// about it; "" for none. A user without permission to read the key sees neither.
	Key, Words string
	Group      string // the group of keys that it is about; "" for none
	By         string // user and address, or the signal or file that it came from
}

const (
	// maxChanges bounds the changes that are kept, and maxChangeText the bytes of a text.
	maxChanges    = 256
	maxChangeText = 256
)

// Changes keeps the newest changes. Any goroutine may use it.
type Changes struct {
	mu   sync.Mutex
	ring []Change // guarded by mu; once full, the oldest is at last%maxChanges
	last int64    // guarded by mu: ID of the newest
}

// Add records a change and sets its ID.
func (cs *Changes) Add(c Change) {
	c.Text, c.Words = cut(c.Text), cut(c.Words)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last++
	c.ID = cs.last
	if len(cs.ring) < maxChanges {
		cs.ring = append(cs.ring, c)
		return
	}
	cs.ring[(cs.last-1)%maxChanges] = c
}

// cut returns the beginning of a text in memory of its own.
func cut(text string) string {
	if len(text) <= maxChangeText {
		return text
	}
	return strings.Clone(text[:maxChangeText])
}

// Since returns the kept changes after the one with that ID, the oldest first.
func (cs *Changes) Since(id int64) []Change {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	from := max(id, cs.last-int64(len(cs.ring)), 0)
	newer := make([]Change, 0, max(0, cs.last-from))
	for n := from; n < cs.last; n++ {
		newer = append(newer, cs.ring[n%maxChanges])
	}
	return newer
}
