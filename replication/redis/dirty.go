package redis

import (
	"slices"
	"sync"
)

// Dirty keys. A command at the offsets (start, end] of the stream that is not run makes its
// keys dirty. A dirty key is read from the primary, which says at which offset R of its stream
// it did so. The value that is stored then includes every command on the key with end <= R
// and none behind. So, for a key that is tracked here:
//
//   - a command with end <= R is passed over, whatever it is: the value includes it;
//   - one behind R makes the key dirty again, and is not run, because nobody knows in which
//     order it and the next reading come;
//   - once the stream has got to R, a key that is not dirty is forgotten, and commands on it
//     are run again.
//
// What is acknowledged is the offset before the first command that no stored value includes.

// mostDirty is how many keys may be dirty before the stream has to wait for readings.
const mostDirty = 1 << 18

// tracked is a key that is dirty, or was read ahead of the stream.
type tracked struct {
	// since is the offset up to which all commands on the key are stored, touched the end of
	// the last one that is not. They mean something while it is dirty.
	since, touched int64
	// read is the offset of the last reading that was stored, -1 before the first.
	read  int64
	dirty bool
}

// reached is a key that was read at an offset, to be forgotten from there on.
type reached struct {
	name name
	read int64
}

// keyTable knows which keys are dirty, and how far the stream was applied. Its methods may be
// called from any goroutine.
type keyTable struct {
	mu sync.Mutex
	// The following are guarded by mu.
	room     sync.Cond // its L is &mu: fewer keys are dirty, or it is over
	keys     map[name]*tracked
	queue    []name // dirty keys that are to be read, each once
	settled  []reached
	dirty    int
	position int64
	closed   bool
}

func newKeyTable() *keyTable {
	l := &keyTable{}
	l.room.L = &l.mu
	l.reset(0)
	return l
}

// reset forgets all keys. The stream goes on behind position.
func (l *keyTable) reset(position int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = map[name]*tracked{}
	l.queue, l.settled, l.dirty, l.position = nil, nil, 0, position
}

// standing is what a command may do with its keys.
type standing uint8

const (
	free     standing = iota // no key is tracked: it may be run
	included                 // all values include it: it is passed over
	dirtied                  // it only makes its keys dirty
)

// judge says what becomes of a command on names that ends at an offset.
func (l *keyTable) judge(names []name, end int64) standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ahead := 0, 0
	for _, n := range names {
		k := l.keys[n]
		if k != nil && !k.dirty && k.read <= l.position {
			delete(l.keys, n) // the stream has got there
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

// touch makes names dirty by a command at (start, end]. Values that include it are left as
// they are, unless force says that they were destroyed.
func (l *keyTable) touch(names []name, start, end int64, force bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		k := l.keys[n]
		if k == nil {
			k = &tracked{read: -1}
			l.keys[n] = k
		}
		if k.read >= end && !force {
			continue
		}
		if !k.dirty {
			k.dirty, k.since = true, start
			l.dirty++
			l.queue = append(l.queue, n)
		}
		k.touched = max(k.touched, end)
		if force {
			k.read = -1
		}
	}
}

// touchAll is touch with force of all keys that are tracked and chosen.
func (l *keyTable) touchAll(chosen func(n name, k *tracked) bool, start, end int64) {
	l.mu.Lock()
	var names []name
	for n, k := range l.keys {
		if chosen(n, k) {
			names = append(names, n)
		}
	}
	l.mu.Unlock()
	l.touch(names, start, end, true)
}

// doubt has keys read again that were read ahead of the stream, since that goes on in another
// history from here. What they hold may be of commands that are not in it. Until they are read,
// not everything before counts as stored.
func (l *keyTable) doubt() {
	position, _ := l.at() // which nobody advances meanwhile: it is called between two links
	l.touchAll(func(_ name, k *tracked) bool { return k.dirty || k.read > position }, position-1, position)
}

// advance says that the stream was applied up to an offset. It waits while too many keys are
// dirty, and reports whether to go on.
func (l *keyTable) advance(to int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.position = to
	for l.dirty > mostDirty && !l.closed {
		l.room.Wait()
	}
	return !l.closed
}

// take returns up to most keys that are to be read, or one of them was before.
func (l *keyTable) take(most int) []name {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(most, len(l.queue))
	batch := slices.Clone(l.queue[:n])
	l.queue = l.queue[n:]
	return batch
}

// giveBack says that names were not read after all.
func (l *keyTable) giveBack(names []name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, names...)
}

// stored says that the value of a key at an offset was stored.
func (l *keyTable) stored(n name, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[n]
	if k == nil || !k.dirty {
		return // the stream began anew
	}
	if k.read = at; k.touched > at {
		k.since = max(k.since, at)
		l.queue = append(l.queue, n)
		return
	}
	k.dirty = false
	l.dirty--
	l.settled = append(l.settled, reached{n, at})
	l.room.Broadcast()
}

// forget removes keys that the stream has got to.
func (l *keyTable) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Readings follow each other, and so do their offsets.
	n := 0
	for ; n < len(l.settled) && l.settled[n].read <= l.position; n++ {
		if k := l.keys[l.settled[n].name]; k != nil && !k.dirty && k.read <= l.position {
			delete(l.keys, l.settled[n].name)
		}
	}
	if l.settled = l.settled[n:]; len(l.settled) == 0 {
		l.settled = nil
	}
}

// at returns how far the stream was applied, and up to which offset all of it is stored.
func (l *keyTable) at() (position, stored int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored = l.position
	if l.dirty > 0 {
		for _, k := range l.keys {
			if k.dirty {
				stored = min(stored, k.since)
			}
		}
	}
	return l.position, stored
}

// waiting is how many keys are dirty.
func (l *keyTable) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirty
}

// open and close say that advance may wait, or not any more.
func (l *keyTable) open()  { l.setClosed(false) }
func (l *keyTable) close() { l.setClosed(true) }

func (l *keyTable) setClosed(closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = closed
	l.room.Broadcast()
}
