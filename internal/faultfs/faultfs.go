// Package faultfs is a file system in memory for tests of persistence. It records every call,
// makes a chosen call fail, and returns what would be on the disk if the machine lost power
// now.
package faultfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// Call is one call that was made.
type Call struct {
	Op   string // create, open, append, rename, remove, list, mkdir, syncdir, lock, write, read, size, sync, truncate, close
	Name string
	Size int // of a write
}

// String is how a call is shown in a transcript.
func (c Call) String() string {
	if c.Op == "write" {
		return fmt.Sprintf("write %s %d", c.Name, c.Size)
	}
	return c.Op + " " + c.Name
}

// FS is the file system. The zero value is not usable; see [New].
type FS struct {
	mu      sync.Mutex
	names   map[string]*inode // as the running system sees them
	durable map[string]*inode // as the disk has them
	pending []entry           // changes of names that are not durable
	dirs    map[string]bool
	locked  map[string]bool
	calls   []Call
	inject  func(n int, c Call) error
	watch   func(n int, crash func(*rand.Rand) *FS)
}

// inode is the content of a file.
type inode struct {
	data   []byte
	synced []byte
	// lost are the parts of data that no Sync writes any more; see [file.Sync].
	lost []span
}

// span is the bytes of a file from one offset up to another.
type span struct{ from, to int }

// entry is a change of a name: to what it means, or nil when it is removed.
type entry struct {
	dir  string
	name string
	to   *inode
	// from is the old name of a rename, which happens together with it.
	from string
}

// New returns an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, durable: map[string]*inode{}, dirs: map[string]bool{}, locked: map[string]bool{}}
}

// ErrShort is for injecting: a write that stores a half and then fails.
var ErrShort = errors.New("no space left on device (half was written)")

// Inject has f decide about every call that changes or syncs something, n counted
// from 1: an error is what the call returns, and it does nothing, but for ErrShort.
// nil ends it.
func (m *FS) Inject(f func(n int, c Call) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inject, m.calls = f, nil
}

// Watch has f called before every call, with what makes a clone as [FS.Crash] does.
// f must not use the file system otherwise.
func (m *FS) Watch(f func(n int, crash func(*rand.Rand) *FS)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = f
}

// Calls returns the calls since New or the last Inject.
func (m *FS) Calls() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Call(nil), m.calls...)
}

func apply(names map[string]*inode, e entry) {
	if e.from != "" {
		delete(names, e.from)
	}
	if e.to == nil {
		delete(names, e.name)
		return
	}
	names[e.name] = e.to
}
