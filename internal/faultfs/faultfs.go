// Package faultfs is a file system in memory for tests of persistence. It records the calls, except
// for those that read the content or the size of a file, makes chosen calls fail, and returns the
// content that the disk would have if the machine lost power now.
package faultfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// Call is a recorded call of the file system.
type Call struct {
	Op   string // the operation: create, open, append, rename, remove, list, mkdir, syncdir, lock, write, sync, truncate or close
	Name string
	Size int // number of bytes of a write; 0 for other operations
}

// String returns the call as a transcript shows it: the operation, the name, and the size of a
// write.
func (c Call) String() string {
	if c.Op == "write" {
		return fmt.Sprintf("write %s %d", c.Name, c.Size)
	}
	return c.Op + " " + c.Name
}

// FS is the file system. The zero value is not usable; use [New]. Any goroutine may call its
// methods.
type FS struct {
	mu      sync.Mutex
	names   map[string]*inode // the files by name, as the running system sees them
	durable map[string]*inode // the files by name, as the disk has them durably
	pending []entry           // changes of names that are not durable yet
	dirs    map[string]bool
	locked  map[string]bool
	calls   []Call
	inject  func(n int, c Call) error
	watch   func(n int, crash func(*rand.Rand) *FS)
}

// inode is the content of a file: data as the running system sees it, and synced as it is durable
// on disk.
type inode struct {
	data   []byte
	synced []byte
	// lost has the parts of data that no later Sync writes; see [file.Sync].
	lost []span
}

// span is the range of bytes of a file from an offset up to another one.
type span struct{ from, to int }

// entry is a change of the name of a file: to is the file that has the name from now on, or nil if
// the name is removed.
type entry struct {
	dir  string
	name string
	to   *inode
	// from is the old name in a rename, which is atomic, otherwise "".
	from string
}

// New returns an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, durable: map[string]*inode{}, dirs: map[string]bool{}, locked: map[string]bool{}}
}

// ErrShort is an error for Inject. A write that gets it stores half of its bytes and then fails.
var ErrShort = errors.New("no space left on device (half was written)")

// Inject makes the file system call f for every call that it records, with the number n of the
// call, counted from 1. If f returns an error, the call returns that and does nothing, except with
// ErrShort. Inject forgets the recorded calls. A nil f ends the injection.
func (m *FS) Inject(f func(n int, c Call) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inject, m.calls = f, nil
}

// Watch makes the file system call f for every call that it records, before the call has an effect,
// with the number n of the call and a function that returns a copy of the disk as [FS.Crash] does.
// f must not use the file system in any other way, since a lock is held.
func (m *FS) Watch(f func(n int, crash func(*rand.Rand) *FS)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = f
}

// Calls returns a copy of the calls that were recorded since New or the last Inject.
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
