package stats

import (
	"strings"
	"sync"
)

// Change is an event that may explain how the server behaves from then on, such as a changed
// setting, a changed user or a deletion of all keys.
type Change struct {
	ID   int64  // number of the change, from 1
	At   int64  // civil time of the change in Unix milliseconds
	Kind string // one word for the kind: config, acl, flush, script, ...
	Text string // what has changed, without secrets and keys
	// Key is the key, or the pattern of keys, that the change is about, and Words are the arguments
	// about it; both are "" if there is none. A user without permission to read the key sees
	// neither.
	Key, Words string
	Group      string // the group of keys that the change is about; "" if there is none
	By         string // the originator: user and address, or the signal or file that caused the change
}

const (
	// maxChanges is the maximum number of changes that are kept, and maxChangeText the maximum
	// length of Text and of Words in bytes.
	maxChanges    = 256
	maxChangeText = 256
)

// Changes is the list of the newest changes. Any goroutine may use it.
type Changes struct {
	mu   sync.Mutex
	ring []Change // the changes; the one with the ID n is at (n-1)%maxChanges; guarded by mu
	last int64    // the ID of the newest change; guarded by mu
}

// Add adds c to the list and sets its ID. It cuts off long texts, and drops the oldest change if
// the list is full.
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

// cut returns the first maxChangeText bytes of text. If text is longer, they are a copy, so that
// the rest can be freed.
func cut(text string) string {
	if len(text) <= maxChangeText {
		return text
	}
	return strings.Clone(text[:maxChangeText])
}

// Since returns the changes in the list whose ID is above id, the oldest first.
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
