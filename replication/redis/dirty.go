package redis

import (
	"slices"
	"sync"
)

// This file keeps track of dirty keys. A command occupies the offsets (start, end] of the stream.
// If the command is not executed, its keys become dirty. A dirty key is read from the primary,
// together with the offset R of the primary's stream at that moment. The stored value then includes
// every command on the key with end <= R, and none after R. So these rules hold for a key that is
// tracked here:
//
//   - A command with end <= R is skipped, because the value includes it.
//   - A command after R makes the key dirty again and is not executed, because the order of the
//     command and of the next reading is unknown.
//   - Once the stream has reached R, a key that is not dirty is removed from the table, and commands
//     on it are executed again.
//
// The acknowledged offset is the largest offset before which each command was executed or is
// included in a stored value.

// maxDirty is the number of dirty keys above which the stream has to wait until some of them were
// read.
const maxDirty = 1 << 18

// tracked is the state of a key that is dirty, or that was read ahead of the stream.
type tracked struct {
	// since is the offset up to which the stored value includes all commands on the key. touched
	// is the end of the last command on the key that was not executed. Both are valid while the
	// key is dirty.
	since, touched int64
	// read is the offset of the last reading that was stored, -1 if there was none.
	read  int64
	dirty bool
}

// reached is a key and the offset at which it was read. The key is removed from the table when
// the stream has reached the offset.
type reached struct {
	name name
	read int64
}

// keyTable records which keys are dirty or were read ahead of the stream, and the offset up to
// which the stream was applied. Any goroutine may call its methods.
type keyTable struct {
	mu sync.Mutex
	// The fields below are guarded by mu.
	changed  sync.Cond // signals that fewer keys are dirty, or that the table was closed; changed.L is &mu
	keys     map[name]*tracked
	queue    []name // the dirty keys that are to be read; each is there once
	settled  []reached
	dirty    int
	position int64
	closed   bool
}

// newKeyTable returns a table without keys.
func newKeyTable() *keyTable {
	t := &keyTable{}
	t.changed.L = &t.mu
	t.reset(0)
	return t
}

// reset removes all keys and sets the position. The stream continues behind position.
func (t *keyTable) reset(position int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = map[name]*tracked{}
	t.queue, t.settled, t.dirty, t.position = nil, nil, 0, position
}

// standing says what happens to a command because of the state of its keys.
type standing uint8

const (
	free     standing = iota // none of the keys is tracked, so the command is executed
	included                 // the values of all keys include the command, so it is skipped
	dirtied                  // the command is not executed, and its keys become dirty
)

// judge returns what to do with a command on the keys names that ends at the offset end. It removes
// from the table those of the keys that are not dirty and were read at an offset which the stream
// has reached.
func (t *keyTable) judge(names []name, end int64) standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ahead := 0, 0
	for _, n := range names {
		k := t.keys[n]
		if k != nil && !k.dirty && k.read <= t.position {
			delete(t.keys, n) // the stream has reached the offset at which the key was read
			k = nil
		}
		if k != nil {
			found++
		}
		if k != nil && k.read >= end {
			ahead++
		}
	}
	switch {
	case found == 0:
		return free
	case ahead == len(names):
		return included
	}
	return dirtied
}

// touch makes the keys names dirty because of a command at (start, end] that was not executed. It
// leaves out a key whose stored value includes the command, unless force is true: then the stored
// values were destroyed.
func (t *keyTable) touch(names []name, start, end int64, force bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range names {
		k := t.keys[n]
		if k == nil {
			k = &tracked{read: -1}
			t.keys[n] = k
		}
		if k.read >= end && !force {
			continue
		}
		if !k.dirty {
			k.dirty, k.since = true, start
			t.dirty++
			t.queue = append(t.queue, n)
		}
		k.touched = max(k.touched, end)
		if force {
			k.read = -1
		}
	}
}

// touchAll makes all tracked keys dirty for which chosen returns true, as touch does with force.
func (t *keyTable) touchAll(chosen func(n name, k *tracked) bool, start, end int64) {
	t.mu.Lock()
	var names []name
	for n, k := range t.keys {
		if chosen(n, k) {
			names = append(names, n)
		}
	}
	t.mu.Unlock()
	t.touch(names, start, end, true)
}

// doubt makes keys dirty that were read ahead of the stream, because the stream continues in
// another history. Their values may include commands that are not in that history. Until these
// keys are read again, not everything before the position counts as stored.
func (t *keyTable) doubt() {
	position, _ := t.at() // the position cannot change meanwhile, because doubt is called between two links
	t.touchAll(func(_ name, k *tracked) bool { return k.dirty || k.read > position }, position-1, position)
}

// advance records that the stream was applied up to the offset to. It blocks while more than
// maxDirty keys are dirty, and returns false if the table was closed.
func (t *keyTable) advance(to int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.position = to
	for t.dirty > maxDirty && !t.closed {
		t.changed.Wait()
	}
	return !t.closed
}

// take returns up to limit dirty keys and removes them from the queue. The caller must read these
// keys, or return them by requeue.
func (t *keyTable) take(limit int) []name {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(limit, len(t.queue))
	batch := slices.Clone(t.queue[:n])
	t.queue = t.queue[n:]
	return batch
}

// requeue puts keys that could not be read back into the queue.
func (t *keyTable) requeue(names []name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, names...)
}

// stored records that the value that the key n had at an offset was stored. The key is no longer
// dirty, unless a later command has touched it; then it is queued again.
func (t *keyTable) stored(n name, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.keys[n]
	if k == nil || !k.dirty {
		return // the table was reset since then
	}
	if k.read = at; k.touched > at {
		k.since = max(k.since, at)
		t.queue = append(t.queue, n)
		return
	}
	k.dirty = false
	t.dirty--
	t.settled = append(t.settled, reached{n, at})
	t.changed.Broadcast()
}

// forget removes from the table the keys that are not dirty and were read at an offset which the
// stream has reached.
func (t *keyTable) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	// The keys are read one batch after another, so their offsets increase.
	n := 0
	for ; n < len(t.settled) && t.settled[n].read <= t.position; n++ {
		if k := t.keys[t.settled[n].name]; k != nil && !k.dirty && k.read <= t.position {
			delete(t.keys, t.settled[n].name)
		}
	}
	if t.settled = t.settled[n:]; len(t.settled) == 0 {
		t.settled = nil
	}
}

// at returns position, the offset up to which the stream was applied, and stored, the offset up to
// which each command was executed or is included in a stored value.
func (t *keyTable) at() (position, stored int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stored = t.position
	if t.dirty > 0 {
		for _, k := range t.keys {
			if k.dirty {
				stored = min(stored, k.since)
			}
		}
	}
	return t.position, stored
}

// waiting returns the number of dirty keys.
func (t *keyTable) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dirty
}

// open and close set whether the table is open. While the table is closed, advance does not block
// and returns false.
func (t *keyTable) open()  { t.setClosed(false) }
func (t *keyTable) close() { t.setClosed(true) }

func (t *keyTable) setClosed(closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = closed
	t.changed.Broadcast()
}
