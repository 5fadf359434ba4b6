package redis

import (
	"maps"
	"sync"
)

// maxNames is the maximum number of names in a [Tally], and longestName the maximum length of a
// name in bytes. These bounds are needed because a peer chooses the names.
const (
	maxNames    = 128
	longestName = 64
)

// others is the name of the count for all names beyond maxNames in a [Tally].
const others = "others"

// Tally counts by name what was skipped. The zero value is an empty Tally. Any goroutine may call
// its methods.
type Tally struct {
	mu sync.Mutex
	// counts is guarded by mu. It has at most maxNames names, and in addition others.
	counts map[string]int64
}

// Add adds n to the count of name. The name is made printable and shortened. Beyond maxNames names,
// a new name counts as others.
func (t *Tally) Add(name string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int64{}
	}
	name = printable(name)
	if _, known := t.counts[name]; !known && len(t.counts) >= maxNames {
		name = others
	}
	t.counts[name] += n
}

// Counts returns a copy of all counts, by name.
func (t *Tally) Counts() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// Reset removes all counts.
func (t *Tally) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.counts)
}

// printable returns name, shortened to 64 bytes, with a '?' for each byte that is not printable
// ASCII.
func printable(name string) string {
	b := []byte(name[:min(len(name), longestName)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
