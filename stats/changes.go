package stats

import (
	"strings"
	"sync"
)

// Change is an event that may explain what the server does from then on: a changed setting, a changed
// user, a deletion of all keys.
type Change struct {
	ID   int64  // from 1, in the order of the changes
	At   int64  // civil time in Unix milliseconds
	Kind string // one word: config, acl, flush, script, ...
	Text string // what has changed, without secrets and keys
	// Key is a key that it is about, or a pattern of keys, and Words what was said of it; "" for none.
	// A user without permission to read the key sees neither.
	Key, Words string
	Group      string // of keys, that it is about; "" for none
	By         string // user and address, or the signal or file that it came from
}

const (
	// maxChanges is how many changes are kept, and maxChangeText how long a text is, in bytes.
	maxChanges    = 256
	maxChangeText = 256
)

// Changes keeps the newest changes. Any goroutine may use it.
type Changes struct {
	mu   sync.Mutex
	ring []Change // guarded by mu; the oldest at last%maxChanges once it is full
	last int64    // guarded by mu: ID of the newest
}

// Add notes a change, whose ID is given here.
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

// cut returns the beginning of a text, which keeps no memory of the rest.
func cut(text string) string {
	if len(text) <= maxChangeText {
		return text
	}
	return strings.Clone(text[:maxChangeText])
}

// Since returns the changes behind the one of that ID that are still kept, the oldest first.
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

// KindOfChange is the kind of the change that a command with FlagAudit makes, "" for none, or
// if the command notes it by itself.
func KindOfChange(name string) string {
	switch name {
	case "flushall", "flushdb":
		return "flush"
	case "acl|setuser", "acl|deluser", "acl|load":
		return "acl"
	case "client|pause", "client|unpause":
		return "pause"
	case "client|kill":
		return "client"
	case "script|kill", "script|flush":
		return "script"
	case "bgrewriteaof":
		return "rewrite"
	case "rl.boost", "rl.unboost", "rl.block", "rl.unblock", "rl.exempt", "rl.unexempt", "rl.reset":
		return "policy"
	}
	if strings.HasPrefix(name, "rl.policy|") || strings.HasPrefix(name, "rl.override|") {
		return "policy"
	}
	return ""
}
