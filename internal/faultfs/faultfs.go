// Package faultfs is a file system in memory for tests of persistence. It records every call,
// makes a chosen call fail, and returns what would be on the disk if the machine lost power
// now.
package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"github.com/cellserver/cellserver/persistence"
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

// step counts a call and asks whether it fails. mu must be held.
func (m *FS) step(op, name string, size int) error {
	c := Call{op, name, size}
	m.calls = append(m.calls, c)
	if m.watch != nil {
		m.watch(len(m.calls), m.crash)
	}
	if m.inject == nil {
		return nil
	}
	return m.inject(len(m.calls), c)
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Create implements persistence.FS.
func (m *FS) Create(name string) (persistence.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("create", name, 0); err != nil {
		return nil, err
	}
	node := m.names[name]
	if node == nil {
		node = &inode{}
		m.change(entry{dir: filepath.Dir(name), name: name, to: node})
	}
	node.data, node.lost = nil, nil
	return &file{fs: m, name: name, node: node}, nil
}

// change makes a change of a name that is not durable yet. mu must be held.
func (m *FS) change(e entry) {
	apply(m.names, e)
	m.pending = append(m.pending, e)
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

// Open implements persistence.FS.
func (m *FS) Open(name string) (persistence.File, error) { return m.existing("open", name) }

// Append implements persistence.FS.
func (m *FS) Append(name string) (persistence.File, error) { return m.existing("append", name) }

func (m *FS) existing(op, name string) (persistence.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(op, name, 0); err != nil {
		return nil, err
	}
	node := m.names[name]
	if node == nil {
		return nil, notExist(op, name)
	}
	return &file{fs: m, name: name, node: node}, nil
}

// Rename implements persistence.FS.
func (m *FS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("rename", to, 0); err != nil {
		return err
	}
	node := m.names[from]
	if node == nil {
		return notExist("rename", from)
	}
	m.change(entry{dir: filepath.Dir(to), name: to, to: node, from: from})
	return nil
}

// Remove implements persistence.FS.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("remove", name, 0); err != nil {
		return err
	}
	if m.names[name] == nil {
		return notExist("remove", name)
	}
	m.change(entry{dir: filepath.Dir(name), name: name})
	return nil
}

// List implements persistence.FS.
func (m *FS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("list", dir, 0); err != nil {
		return nil, err
	}
	var names []string
	for name := range m.names {
		if rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator)); ok && !strings.ContainsRune(rest, filepath.Separator) {
			names = append(names, rest)
		}
	}
	sort.Strings(names)
	return names, nil
}

// Mkdir implements persistence.FS.
func (m *FS) Mkdir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirs[dir] = true
	return m.step("mkdir", dir, 0)
}

// SyncDir implements persistence.FS.
func (m *FS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("syncdir", dir, 0); err != nil {
		return err
	}
	rest := m.pending[:0]
	for _, e := range m.pending {
		if e.dir == dir {
			apply(m.durable, e)
		} else {
			rest = append(rest, e)
		}
	}
	m.pending = rest
	return nil
}

// Lock implements persistence.FS.
func (m *FS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("lock", name, 0); err != nil {
		return nil, err
	}
	if m.locked[name] {
		return nil, persistence.ErrLocked
	}
	m.locked[name] = true
	return unlocker(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, name)
	}), nil
}

type unlocker func()

// Close implements io.Closer.
func (u unlocker) Close() error {
	u()
	return nil
}

// Content returns what is in a file now.
func (m *FS) Content(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if node := m.names[name]; node != nil {
		return append([]byte(nil), node.data...)
	}
	return nil
}

// SetContent makes a file hold b, durably.
func (m *FS) SetContent(name string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node := &inode{data: append([]byte(nil), b...), synced: append([]byte(nil), b...)}
	m.names[name], m.durable[name] = node, node
}

// Names returns all files.
func (m *FS) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.names {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
