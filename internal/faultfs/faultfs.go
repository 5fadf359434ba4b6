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

// Call is a recorded call.
type Call struct {
	Op   string // create, open, append, rename, remove, list, mkdir, syncdir, lock, write, read, size, sync, truncate, close
	Name string
	Size int // of a write
}

// String returns the call as transcripts show it.
func (c Call) String() string {
	if c.Op == "write" {
		return fmt.Sprintf("write %s %d", c.Name, c.Size)
	}
	return c.Op + " " + c.Name
}

// FS is the file system. The zero value is not usable; see [New].
type FS struct {
	mu      sync.Mutex
	names   map[string]*inode // the names as the running system sees them
	durable map[string]*inode // the names that are durable on disk
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
	// lost are the parts of data that no later Sync writes; see [file.Sync].
	lost []span
}

// span is the bytes of a file from one offset up to another.
type span struct{ from, to int }

// entry is a change of a name: to is the new file, or nil for a removal.
type entry struct {
	dir  string
	name string
	to   *inode
	// from is the old name of a rename, which is atomic.
	from string
}

// New returns an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, durable: map[string]*inode{}, dirs: map[string]bool{}, locked: map[string]bool{}}
}

// ErrShort is an error for Inject: the write stores a half and then fails.
var ErrShort = errors.New("no space left on device (half was written)")

// Inject calls f for every call that changes or syncs something, with the number n of the call,
// counted from 1. If f returns an error, the call returns it and does nothing, except for ErrShort.
// nil ends the injection.
func (m *FS) Inject(f func(n int, c Call) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inject, m.calls = f, nil
}

// Watch calls f before every call of the file system, with a function that returns a copy as
// [FS.Crash] does. f must not use the file system in any other way.
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
